"""Texts in all scripts: what a word is, that texts are equal however they were typed, and what older files have."""

import itertools
import json
import math
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import dither
from dither.features import Category, Hashed, Text, Words, tokens

NFC_AND_NFD = ("caf\u00e9", "cafe\u0301")

WORDS = [
    ("हिन्दी की का", ["हिन्दी", "की", "का"]),
    ("தமிழ் తెలుగు বাংলা", ["தமிழ்", "తెలుగు", "বাংলা"]),
    ("العَرَبِيَّة، مُحَمَّد", ["العَرَبِيَّة", "مُحَمَّد"]),
    ("שָׁלוֹם עוֹלָם", ["שָׁלוֹם", "עוֹלָם"]),
    ("Cafe\u0301 CAFÉ naïve", ["café", "café", "naïve"]),
    ("q\u0323\u0307 x\u0304", ["q\u0323\u0307", "x\u0304"]),  # no letter of Unicode has these marks
    ("می\u200cخواهم", ["می\u200cخواهم"]),
    ("İstanbul STRASSE straße ΣΟΦΟΣ σοφος", ["i\u0307stanbul", "strasse", "strasse", "σοφοσ", "σοφοσ"]),
    ("co\u00adoperate \u200eabc\u200f", ["cooperate", "abc"]),
    ("한국어 단어", ["한국어", "단어"]),
    ("C++, C#; c (C++17) g++/F# Google+", ["c++", "c#", "c", "c++", "17", "g++", "f#", "google+"]),
    ("C++ für C# é", ["c++", "für", "c#", "é"]),
    ("1+1 a+b #tag foo#bar c ++ ##", ["1", "1", "a", "b", "tag", "foo", "bar", "c"]),
    ("don't re-use snake_case", ["don", "t", "re", "use", "snake_case"]),
    ("👍👍🏽 ok❤️", ["👍", "👍🏽", "ok", "❤"]),
    ("👨‍👩‍👧👩🏾‍🚀🏳️‍🌈", ["👨‍👩‍👧", "👩🏾‍🚀", "🏳‍🌈"]),
    ("🇩🇪🇦🇹 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 1️⃣#️⃣", None),
    ("5€ 5£ 20°", ["5", "€", "5", "£", "20", "°"]),
    ("東京タワーTower", ["東京", "京タ", "タワ", "ワー", "tower"]),
    ("我 爱你", ["我", "爱你"]),
    ("น้ำ ข้าว", ["น้ำ", "ข้า", "าว"]),
    ("ខ្មែរ", ["ខ្មែ", "មែរ"]),
    ("葛\U000e0100 葛", ["葛", "葛"]),
    ("a\u200bb a\u00a0b a\u3000b", ["a", "b"] * 3),
    ("\u0301 \u200d \ufe0f", []),
]
FLAGS = ["🇩🇪", "🇦🇹", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "1\u20e3", "#\u20e3"]


@pytest.mark.parametrize(("text", "wanted"), WORDS, ids=[text[:12] for text, _ in WORDS])
def test_words_by_hand(text, wanted):
    """Seen red with `\\w+` of the lower case: हिन्दी was ह, न, द, emoji were no words, and c++ was c."""
    assert tokens.words(text, 2) == (FLAGS if wanted is None else wanted)


def test_vowel_signs_and_accents_tell_texts_apart():
    """Seen red with `\\w+`: ह, न, द for हिन्दी, and one code for की and का, for c++, c# and c, and for all emoji."""
    f = dither.Features(arm={"t": Text(width=4096)}, intercept=False)
    texts = ["की", "का", "क", "C++", "C#", "c", "👍", "👎", "👍🏽", "", "مُحَمَّد", "محمد", "ข้า", "ขา"]
    X = f.encode(None, [{"t": text} for text in texts])
    assert len(np.unique(X, axis=0)) == len(texts)


@pytest.mark.parametrize(
    "kind",
    [Category([NFC_AND_NFD[1], "tea"]), Hashed(64), Text(64), Words([NFC_AND_NFD[1], "tea"])],
    ids=lambda k: k.name,
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_text_is_the_same_however_its_accents_were_typed(kind, form):
    """Seen red without NFC: each of the four kinds had another column for e and an accent than for é."""
    f = dither.Features(arm={"t": kind}, intercept=False)
    rows = [{"t": text} for text in NFC_AND_NFD]
    if kind.name in ("text", "words"):
        rows += [{"t": [text]} for text in NFC_AND_NFD] + [{"t": f"{NFC_AND_NFD[1]}!"}]
    X = f.of_arms(rows)[:, 1:]
    assert (X[0] == X).all()
    assert np.abs(X).sum() == len(rows)
    assert not f.unknown
    assert all(unicodedata.is_normalized("NFC", name) for name in f.columns)
    with pytest.raises(ValueError, match="comes twice"):
        Category([unicodedata.normalize(form, "é"), "\u00e9"])


def test_a_fit_and_its_names_are_in_one_form():
    """Seen red without NFC in `read`: two categories, and two words."""
    f = dither.Features(arm={"c": "category", "w": "words"}, intercept=False)
    f = f.fit(arms=[{"c": text, "w": text} for text in NFC_AND_NFD])
    assert f.columns == ("c=caf\u00e9", "w^caf\u00e9")


def test_an_id_of_an_arm_is_the_same_however_its_accents_were_typed():
    """Seen red without NFC in `id_text`: the second `add` was a second arm, and the request was for an unknown one."""
    nfc, nfd = NFC_AND_NFD
    shop = dither.Catalogue(dither.Features(arm={"id": Hashed(32)}), {nfd: {}, "tea": {}})
    assert shop.ids == (nfc, "tea")
    with pytest.raises(ValueError, match="is in the catalogue"):
        shop.add(nfc, {})
    assert nfd in shop
    assert shop.slot(nfd) == shop.slot(nfc) == 0
    assert_array_equal(shop.encode(None, [nfd, "tea"]), shop.encode(None, [nfc, "tea"]))
    shop.retire(nfd)
    assert shop.ids == ("tea",)


def test_numbers_by_id_find_an_arm_in_either_form():
    """Seen red with `str(id)` in `by_place` and `position`: an unknown arm."""
    nfc, nfd = NFC_AND_NFD
    shop = dither.Catalogue(dither.Features(arm={"id": Hashed(32)}), {nfc: {}, "tea": {}})
    with dither.Live(None, bandit=dither.LinFP(features=shop.features, seed=0), catalogue=shop) as live:
        d = live.choose({}, arms=[nfd, "tea"], minimum={nfd: 1.0})
        assert d.arm == nfc
        assert d.propensity == 1.0


def test_numbers_by_id_find_an_arm_of_before_in_either_form():
    """Its id keeps its form. Seen red with NFC alone: no such arm."""
    nfc, nfd = NFC_AND_NFD
    shop = dither.Catalogue(dither.Features(arm={"id": Hashed(32)}))
    shop.extend([(1, "add", nfd, {"id": nfd}), (2, "add", "tea", {"id": "tea"})])
    assert shop.ids == (nfd, "tea")
    with dither.Live(None, bandit=dither.LinFP(features=shop.features, seed=0), catalogue=shop) as live:
        for id in (nfc, nfd):
            d = live.choose({}, arms=[id, "tea"], minimum={id: 1.0})
            assert d.arm == nfd
            assert live.choose({}, minimum={id: 1.0}).arm == nfd
        with pytest.raises(LookupError, match="no arm in minimum 'th\u00e9'"):
            live.choose({}, minimum={"th\u00e9": 1.0})


# --- what files say that were written before


OF_BEFORE = (
    b'{"events":[[1,"add","cafe\\u0301",{"c":"cafe\\u0301","h":"cafe\\u0301","t":"\\u0939\\u093f\\u0928\\u094d\\u0926'
    b'\\u0940 C++","w":"\\u0939\\u093f\\u0928\\u094d\\u0926\\u0940 C#"}],[2,"add","tea",{"c":"caf\\u00e9","h":"caf'
    b'\\u00e9","t":["C++"],"w":null}]],"features":{"features":{"absent":"error","arm":[["c",{"kind":"category","least"'
    b':1,"missing":"zero","most":null,"unknown":"zero","values":["cafe\\u0301","tea"]}],["h",{"kind":"hashed","missing'
    b'":"zero","width":6}],["t",{"kind":"text","missing":"zero","width":5}],["w",{"kind":"words","least":1,"missing":'
    b'"zero","most":500,"unknown":"zero","vocabulary":["\\u0939","c"]}]],"context":[],"cross":[],"form":"shared",'
    b'"intercept":false,"slots":null},"fingerprint":"77b58e1e3e916806","format":1},"format":1,"id":"id"}'
)
HALF = 1 / math.sqrt(2)
X_OF_BEFORE = [
    [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, -1, 0, 0, HALF, HALF],
    [0, 0, 0, 1, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0],
]


def test_a_catalogue_and_features_of_before_mean_the_same():
    """The bytes and X are those that were written then. Seen red with `version` 2 for kinds that do not say it."""
    nfc, nfd = NFC_AND_NFD
    shop = dither.Catalogue.from_bytes(OF_BEFORE)
    assert_array_equal(shop.encode(None), X_OF_BEFORE)
    assert shop.to_bytes() == OF_BEFORE
    assert shop.features.fingerprint == "77b58e1e3e916806"
    for id in (nfd, nfc):  # its id keeps its form, and is found in both
        assert_array_equal(shop.encode(None, [id]), X_OF_BEFORE[:1])
        with pytest.raises(ValueError, match="is in the catalogue"):
            shop.add(id, {"c": "tea", "h": "", "t": "", "w": ""})
    shop.change(nfc, {"c": "tea"})
    assert shop.records[nfd]["c"] == "tea"
    with pytest.raises(ValueError, match="a record or None"):
        shop.extend([(4, "add", "x", 3)])
    assert_array_equal(shop.encode(None, [nfc])[:, :2], [[0, 1]])
    bandit = dither.LinFP(features=shop.features, seed=0)
    assert bandit.dim == 15


def test_the_version_is_a_setting_and_is_told_apart():
    """Seen red with a fingerprint without the version: Features of the two rules passed as the same."""
    old = dither.Features(arm={"t": Text(8, version=1), "c": Category(["a"], version=1)}, intercept=False)
    new = dither.Features(arm={"t": Text(8), "c": Category(["a"])}, intercept=False)
    assert old.fingerprint != new.fingerprint
    assert json.loads(old.to_bytes())["format"] == 1
    assert json.loads(new.to_bytes())["format"] == 2
    for f in (old, new):
        again = dither.Features.from_bytes(f.to_bytes())
        assert again == f
        assert again.arm["t"].version == f.arm["t"].version
    with pytest.raises(ValueError, match=r"was text, .*version=1 and is text, .*version=2"):
        old.check(new, what="features=", whose="the bandit")
    for make in (lambda n: Text(version=n), lambda n: Words(version=n), lambda n: Hashed(version=n)):
        with pytest.raises(ValueError, match="version must be the number of a rule for texts, 1 to 2; got 3"):
            make(3)


def test_a_vocabulary_is_found_in_texts_however_it_is_written():
    """Seen red with the words as they are stated: "C++" was in no text, since the words of a text are in lower case."""
    f = dither.Features(arm={"t": Words(["C++", "C#", "c", "STRASSE", "New York", "Tea", "tea"])}, intercept=False)
    X = f.of_arms([{"t": text} for text in ("C++ c++", "c#", "C", "Straße", "New York", "TEA", ["Tea"], ["New York"])])
    assert X[:, 1:].argmax(axis=1).tolist() == [0, 1, 2, 3, 0, 6, 5, 4]
    assert X[:, 1:].sum(axis=1).tolist() == [1, 1, 1, 1, 0, 1, 1, 1]
    assert f.unknown == {"t": 1}
    old = dither.Features(arm={"t": Words(["C", "d"], version=1)}, intercept=False)
    assert not old.of_arms([{"t": "C"}, {"t": "c"}])[:, 1:].any()


# --- words that cancel


def cancelling(width):
    """Two words that meet in a column with other signs."""
    f = dither.Features(arm={"t": Text(width)}, intercept=False)
    words = [f"w{i}" for i in range(60)]
    X = f.encode(None, [{"t": word} for word in words])
    pairs = list(itertools.combinations(range(60), 2))
    opposite = [(words[i], words[j]) for i, j in pairs if (X[i] == -X[j]).all()]
    assert abs(len(opposite) / len(pairs) - 1 / (2 * width)) < 0.02
    return opposite


def test_words_that_cancel_are_counted():
    """Seen red without the count: nothing said that "a b" was encoded as a text without words."""
    pairs = cancelling(8)
    f = dither.Features(arm={"t": Text(8), "u": Text(8, signed=False)}, intercept=False)
    X = f.encode(None, [{"t": f"{one} {other}", "u": f"{one} {other}"} for one, other in pairs])
    assert not X[:, :8].any()
    assert f.cancelled == {"t": len(pairs)}
    assert_array_equal(X[:, 8:].sum(axis=1), np.ones(len(pairs)))  # both words in one column, to length 1
    one, other = pairs[0]
    f.encode(None, [{"t": [one, one, other], "u": ""}])  # 1 is left
    assert f.cancelled == {"t": len(pairs)}
    assert not f.missing
    assert not f.unknown


def test_without_signs_no_word_is_lost():
    """The sums of the columns are the number of words. Seen red with signs."""
    rng = np.random.default_rng(0)
    f = dither.Features(arm={"t": Text(8, signed=False)}, intercept=False)
    texts = [[f"w{i}" for i in rng.integers(1000, size=n)] for n in range(1, 40)]
    X = f.encode(None, [{"t": text} for text in texts])
    smallest = np.array([row[row > 0].min() for row in X])
    assert (X >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)
    counts = X / smallest[:, None]
    for row, text in zip(counts, texts, strict=True):
        scale = len(text) / row.sum()
        np.testing.assert_allclose(row * scale, np.round(row * scale), atol=1e-9)
    assert dither.Features.from_bytes(f.to_bytes()) == f
    assert "without signs" in str(f)
    assert f.fingerprint != dither.Features(arm={"t": Text(8)}, intercept=False).fingerprint
    assert f.cancelled == {}
    with pytest.raises(ValueError, match="signed must be True or False"):
        Text(signed="no")


# --- for any text


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40))
def test_equal_texts_have_equal_words(text):
    """Seen red without the second NFC, and with casefold before NFD (ᾳ with an accent)."""
    words = tokens.words(text, 2)
    for form in ("NFC", "NFD"):
        assert tokens.words(unicodedata.normalize(form, text), 2) == words
    assert all(word and unicodedata.is_normalized("NFC", word) for word in words)
    letters = [c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c)[0] in "LN"]
    assert bool(letters) <= bool(words)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abC+#*_1 .-'", max_size=20))
def test_ascii_has_the_same_words_beside_other_letters(text):
    """The two patterns are one rule. Seen red with `\\+*` in one of them."""
    assert tokens.words(f"{text} é", 2) == [*tokens.words(text, 2), "é"]
