"""`store="records"`: what X was made of is kept beside the decision, comes back on request, goes with an erasure."""

import json
import zlib

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.testing import assert_array_equal

import dither
from dither import log
from dither.features import Category, Numeric, raw_records
from dither.log.database import sql_tables
from round_trips import answers

pytestmark = pytest.mark.usefixtures("closing")
ARMS = [{"topic": "art", "words": 1.0, "by": "ann"}, {"topic": "war", "words": 2.0, "by": "bob"}]
WHO = {"country": "se", "user": "u7", "age": 40}


def features():
    return dither.Features(
        context={"country": ["se", "de"]},
        arm={"topic": Category(["art", "war"]), "words": Numeric(mean=0, scale=1)},
        cross=[("country", "topic")],
    )


def begin(**settings):
    return dither.LinFP(**{"features": features(), "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


def kept(live):
    """Id of a decision -> its records, in the order of the table."""
    d, r = sql_tables.decisions.c, sql_tables.records.c
    with live.ledger.database.reading() as connection:
        rows = connection.execute(sa.select(d.id, r.bytes).join_from(sql_tables.records, sql_tables.decisions)).all()
    return {row.id: raw_records.unpacked(bytes(row.bytes)) for row in rows}


def test_what_x_was_made_of_is_kept_whole(shared):
    with dither.Live(shared, bandit=begin(), store="records") as live:
        one = live.choose(WHO, ARMS)
        several = live.choose([WHO, {"country": "de"}], iter(ARMS), mask=[[True, True], [False, True]])
        bare, named = live.choose(features().encode(WHO, ARMS)), live.choose(WHO, dict(zip("ab", ARMS, strict=True)))
        found = kept(live)
        assert found == {
            one.id: (WHO, ARMS),
            named.id: (WHO, [{"id": id} | one for id, one in zip("ab", ARMS, strict=True)]),
            several.id[0]: (WHO, ARMS),
            several.id[1]: ({"country": "de"}, ARMS[1:]),
        }
        assert bare.id not in found  # it was X itself
        rows = live.read()
        for i, id in enumerate([one.id, *several.id]):
            assert_array_equal(features().encode(*found[id]), np.array(rows.frame["features"][i].to_list()))
        assert not {"raw_context", "raw_arms"} & set(rows.frame.columns)
    with dither.Live(shared) as plain:  # it is a setting of the process
        assert plain.choose(WHO, ARMS).id not in kept(plain)
    # seen red: `iter(ARMS)` read twice; the arms of a mask


def test_beside_a_catalogue_stays_what_the_request_brought():
    shop = dither.Catalogue(features(), {"a1": ARMS[0], "a2": ARMS[1]})
    live = dither.Live(None, bandit=begin(), catalogue=shop, store="records")
    d = live.choose(WHO, ["a1", "a2"])
    more = {"a2": {"words": 9.0, "odd": 1}, "a1": None}
    brought, masked = live.choose(WHO, more), live.choose(WHO, more, mask=[False, True])
    both = live.choose([WHO, WHO], more, mask=[[True, True], [False, True]])
    given = {"a2": more["a2"]}
    assert kept(live) == {
        d.id: (WHO, None),
        brought.id: (WHO, given),
        masked.id: (WHO, None),
        both.id[0]: (WHO, given),
        both.id[1]: (WHO, None),
    }
    assert live.read().frame["catalogue"].to_list() == [2] * 5
    # seen red: records of arms that were masked


def test_a_choice_within_the_transaction_keeps_them_too():
    shop = dither.Catalogue(features(), {"a1": ARMS[0], "a2": ARMS[1]})
    live = dither.Live(None, bandit=begin(), catalogue=shop, store="records", budgets={"a1": dither.Budget(1)})
    ids = live.choose([WHO] * 3).id
    assert kept(live) == dict.fromkeys(ids, (WHO, None))


def test_records_need_features():
    with pytest.raises(ValueError, match=r"store='records' keeps what Features make X of.*store='all'"):
        dither.Live(None, bandit=dither.LinFP(dim=3), store="records")
    with pytest.raises(ValueError, match="must be one of 'all', 'shown', 'records'"):
        dither.Live(None, bandit=begin(), store="record")


def test_what_cannot_be_kept_is_refused_and_nothing_is_there():
    live = dither.Live(None, bandit=begin(), store="records")
    with pytest.raises(ValueError, match=r"'user' of the context is <object.*Leave the field out"):
        live.choose(WHO | {"user": object()}, ARMS)
    assert len(live.ledger) == 0
    assert kept(live) == {}


def test_they_are_read_where_they_are_asked_for(shared, tmp_path):
    with dither.Live(shared, bandit=begin(), store="records") as live:
        d = live.choose(WHO, ARMS, extra={"raw_context": "mine"})
        live.reward(d.id, 1.0)
        live.choose(features().encode(WHO, ARMS))
        rows = live.read(records=True).frame
        assert [one and json.loads(one) for one in rows["raw_context"]] == [WHO, None]
        assert [one and json.loads(one) for one in rows["raw_arms"]] == [ARMS, None]
        assert rows["raw_context (yours)"].to_list() == ["mine", None]
        live.ledger.export(tmp_path / "without")
        live.ledger.export(tmp_path / "with", records=True)
        live.ledger.export(tmp_path / "without", records=True)  # the days are written again
        live.ledger.export(tmp_path / "without")
        assert "raw_arms" not in log.read(tmp_path / "without").frame.columns
        assert log.read(tmp_path / "with").frame["raw_context"].to_list() == rows["raw_context"].to_list()
        with dither.Live(None, bandit=begin()) as other:
            other.ledger.take_over(tmp_path / "with")
            assert kept(other) == kept(live)
            assert other.read(records=True).frame["raw_context"].to_list() == rows["raw_context"].to_list()
        with pytest.raises(ValueError, match="records must be True or False"):
            live.read(records="yes")
    # seen red: an edition that knows nothing of records


def test_an_erasure_finds_them_and_takes_them(shared):
    with dither.Live(shared, bandit=begin(), store="records") as live:
        ids = [live.choose(WHO | {"user": user}, ARMS).id for user in ("u7", 8, None)]
        third = live.choose({"country": "de"}, ARMS).id
        with pytest.raises(LookupError, match=r"no decision has a column 'usr'.*age, by, country, topic, user"):
            live.erase(usr="u7")
        assert live.erase(user="8") == 1
        assert set(kept(live)) == {ids[0], ids[2], third}
        assert live.erase(country="se") == 2
        assert set(kept(live)) == {third}
        assert live.erase(by="bob") == 1
        assert kept(live) == {}
        assert live.read().erased.all()
    # seen red: the row of an erased decision that stays


@pytest.mark.parametrize("how", ["ids", "field"])
def test_no_byte_of_an_erased_record_stays_in_the_file(tmp_path, how):
    path = tmp_path / "a.db"
    live = dither.Live(path, bandit=begin(), store="records")
    who = WHO | {"note": "".join(map(chr, range(0x4E00, 0x4E00 + 3000)))}  # longer than a page
    d = live.choose(who, ARMS)
    other = live.choose(WHO | {"user": "u8"}, ARMS)
    data = raw_records.packed(raw_records.RawRequest(who, ARMS))
    pieces = [data[at : at + 64] for at in range(0, len(data) - 64, 64)]

    def there():
        files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        return sum(piece in files for piece in pieces)

    assert there() > len(pieces) // 2
    live.erase([d.id]) if how == "ids" else live.erase(user="u7")
    assert there() == 0
    assert set(kept(live)) == {other.id}
    # seen red: a row that is left


def test_with_its_records_a_decision_is_one_round_trip(postgres):
    live = dither.Live(postgres.url(), bandit=begin(), learn=False, store="records", refresh_seconds=1e6)
    live.choose(WHO, ARMS)
    with answers(live) as number:
        d = live.choose(WHO, ARMS, extra={"user": "u1"})
    assert number == [1]
    assert kept(live)[d.id] == (WHO, ARMS)
    with pytest.raises(ValueError, match="was given to a decision before"):
        live.choose(WHO, ARMS, id=d.id)


def test_records_of_a_decision_that_is_made_again_are_those_of_the_last_one(postgres):
    url = postgres.url()
    shop = dither.Catalogue(features(), {"a1": ARMS[0], "a2": ARMS[1]})
    live = dither.Live(url, bandit=begin(), catalogue=shop, learn=False, store="records", refresh_seconds=1e6)
    live.choose(WHO)
    with dither.Live(url) as other:
        other.catalogue.retire("a2")
    d = live.choose(WHO)
    assert list(kept(live).values()) == [(WHO, None)] * 2
    assert (d.id in kept(live), d.arm) == (True, "a1")


def test_zlib_is_what_the_bytes_are():
    data = raw_records.packed(raw_records.RawRequest(WHO, ARMS))
    assert json.loads(zlib.decompress(data)) == {"context": WHO, "arms": ARMS}
