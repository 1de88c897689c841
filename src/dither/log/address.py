"""Where a ledger lives, as a user writes it, and how that is shown.

    None, a path, a URL       memory, one file (SQLite), PostgreSQL

A URL holds secrets. So no message repeats what was written: `Address.shown` and `shown` make the name that messages,
`repr` and logs have, of the parts that are no secrets. What is mistyped, and may be a URL, is refused: it would become
the name of a file.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

_URL = re.compile(r"\s*postgres(?:ql)?(?:\+\w+)?://(.*)", re.IGNORECASE | re.DOTALL)
_PARTS = re.compile(  # a user may have an @, a password anything else
    r"(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?(?P<hosts>[^/?@]*)(?:/(?P<dbname>[^?@]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_HOST = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<host>[^:\[\]]*))(?::(?P<port>\d*))?")
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*)(?=:/|//)", re.IGNORECASE)
_KEYWORDS = (  # options of libpq that hold no secrets
    "host|hostaddr|port|dbname|user|service|servicefile|options|application_name|fallback_application_name|sslmode|"
    "target_session_attrs|load_balance_hosts|connect_timeout|client_encoding|tcp_user_timeout|keepalives|"
    "keepalives_idle|keepalives_interval|keepalives_count|sslrootcert|sslcert|sslcrl|sslsni|sslnegotiation|gssencmode|"
    "channel_binding|require_auth|requirepeer|krbsrvname|ssl_min_protocol_version|ssl_max_protocol_version|"
    "prepare_threshold"
)
_PLAIN = re.compile(_KEYWORDS)
_MISTYPED = [  # no path of a ledger, unless it is absolute
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r".*://",
        r"\s*[a-z][a-z0-9+.-]+:/",
        r"\s*(?:postgre|pg|psql)[\w+]*(?::|//)",
        r"(?!\s*/).*\b(?:password|passwd|pwd|passfile|sslpassword)\s*=",
        rf"\s*(?:{_KEYWORDS})\s*=(?![^/\s]+/)",
        r"(?!\s*/|[a-z]:[/\\]).*:.*@",
        r"\s*//[^/]+:.*@",
    )
]
_SETTING = re.compile(r"(-c\s*|--)(?!search_path=)([\w.-]+)=(\S+)")  # among the options, which may set anything
_HIDDEN = "***"
_FORM = "postgresql://user:password@host/database"


@dataclass(frozen=True, eq=False)
class Address:
    """The place of a ledger. What `repr` shows of it has no secrets."""

    kind: str  # "memory", "file" or "postgres"
    shown: str
    file: Path | None = None  # without links, and absolute
    options: dict[str, Any] = field(default_factory=dict, repr=False)  # of PostgreSQL, as the driver names them
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def clean(self, text: str) -> str:
        """The words of a driver or a server, without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def purge(self, error: BaseException | None) -> None:
        """Take the secrets out of an error and those that led to it."""
        done: set[int] = set()
        errors = [error]
        while errors:
            one = errors.pop()
            if one is not None and id(one) not in done:
                done.add(id(one))
                one.args = tuple(self.clean(part) if isinstance(part, str) else part for part in one.args)
                if "_pgconn" in vars(one):  # psycopg keeps the connection there, with its password
                    vars(one)["_pgconn"] = None
                errors += [one.__cause__, one.__context__, getattr(one, "orig", None)]


def there(place: Address) -> None:
    """Raise FileNotFoundError where a place is a file that is not there, before anything is made."""
    if place.file is not None and not place.file.exists():
        raise missing(place.shown)


def missing(shown: str) -> FileNotFoundError:
    """The error of one who makes no ledger, where there is none."""
    return FileNotFoundError(
        f"no ledger in {shown}, and none was made: give the file or the URL of one that is there, or begin one with "
        f"its bandit, dither.Live(home, bandit=...)"
    )


def of(where: Any) -> Address:
    """The address that a user has written: None, a path, a URL as text, or one of SQLAlchemy.

    Raises TypeError for what is neither text nor path; ValueError for a URL of another database, for what may be a
    mistyped URL, and for a keyword string of libpq ("host=... password=...").
    """
    if where is None:
        return Address("memory", "memory")
    if hasattr(where, "render_as_string"):
        where = where.render_as_string(hide_password=False)
    if not isinstance(where, (str, os.PathLike)):
        raise TypeError(
            f"a ledger lives in memory (None), in a file (a path) or in PostgreSQL ({_FORM}): got an object of type "
            f"{type(where).__name__}"
        )
    text = os.fspath(where)
    text = os.fsdecode(text)
    url = _URL.fullmatch(text)
    if url is not None:
        return _postgres(url[1].strip())
    if mistyped(text):
        raise ValueError(
            f"a ledger lives in memory (None), in a file (a path) or in PostgreSQL ({_FORM}), and this is none of "
            f"them: got {shown(text)!r}, of which the rest may hold a password. A file whose name looks like that is "
            f"passed as an absolute path"
        )
    if text == ":memory:":
        raise ValueError("a ledger in memory is Ledger(None), and ':memory:' is a name that SQLite has for it")
    # SQLite has the journal beside the file itself, and a process may change its folder
    return Address("file", text, Path(os.path.realpath(text)))


def url(text: str) -> bool:
    """Whether a text is a URL of PostgreSQL."""
    return _URL.fullmatch(text) is not None


def mistyped(text: str) -> bool:
    """Whether a text is a URL of some kind or a keyword string of libpq, rather than a path."""
    return any(pattern.match(text) for pattern in _MISTYPED)


def local(source: Any) -> Path:
    """The path of a log. Raises ValueError for a URL, and for what may be one, without what it says."""
    if mistyped(os.fsdecode(os.fspath(source))):
        raise ValueError(
            f"{shown(source)} is a URL, or may be one, and no file of a log: write a ledger to Parquet by "
            f"dither.log.Ledger(...).export(folder) and read the folder, or take dither.log.Ledger(...).read()"
        )
    return Path(source)


def shown(source: Any) -> str:
    """A path as it is; of a URL, and of what may be one, what is no secret."""
    text = os.fsdecode(os.fspath(source))
    if not url(text) and not mistyped(text):
        return text
    scheme = _SCHEME.match(text)
    return f"{scheme[1]}://{_HIDDEN}" if scheme else _HIDDEN


def _postgres(rest: str) -> Address:
    """The address of a URL, without its scheme."""
    parts = _PARTS.fullmatch(rest)
    hosts = [] if parts is None else [_HOST.fullmatch(one) for one in parts["hosts"].split(",")]
    pieces = [] if parts is None else [piece for piece in (parts["query"] or "").split("&") if piece]
    if parts is None or None in hosts or not all(re.match(r"\w+=", piece) for piece in pieces):
        raise ValueError(
            f"the URL of the ledger cannot be read, and is not repeated here since it may hold a password. It is "
            f"{_FORM}, with host:port where there is a port, several hosts with commas, and ?name=value&name=value. In "
            f"user and password write @ : / ? # & % as urllib.parse.quote(password, safe='') does"
        )
    options: dict[str, Any] = {}
    for name in ("user", "password", "dbname"):
        if parts[name]:
            options[name] = unquote(parts[name])
    if parts["hosts"]:
        options |= _hosts([(one["v6"] or unquote(one["host"] or ""), one["port"] or "") for one in hosts if one])
    query = parse_qsl("&".join(pieces), keep_blank_values=True)
    options |= dict(query)
    several = [value for name, value in query if name == "host"]
    if len(several) > 1:  # as SQLAlchemy writes several hosts
        options |= _hosts([_split(one) for one in several])
    secrets = [value for name, value in options.items() if not _PLAIN.fullmatch(name)]
    secrets += [value for name, _, value in (piece.partition("=") for piece in pieces) if not _PLAIN.fullmatch(name)]
    secrets += [parts["password"], *(match[3] for match in _SETTING.finditer(options.get("options", "")))]
    secrets += [os.environ.get("PGPASSWORD")]
    options["prepare_threshold"] = _threshold(options.get("prepare_threshold"))
    kept = {secret for secret in secrets if secret}
    return Address("postgres", _name(options), None, options, tuple(sorted(kept, key=len, reverse=True)))


def _hosts(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Hosts and ports, as libpq takes several."""
    ports = {"port": ",".join(port for _, port in pairs)} if any(port for _, port in pairs) else {}
    return {"host": ",".join(host for host, _ in pairs)} | ports


def _split(host: str) -> tuple[str, str]:
    """A host and its port, of host:port."""
    match = None if host.startswith("/") else _HOST.fullmatch(host)
    return (host, "") if match is None else (match["v6"] or match["host"], match["port"] or "")


def _threshold(value: str | None) -> int | None:
    """After how many calls of a statement the server keeps it prepared; None: never."""
    if value is None or value.lower() == "none":
        return None
    if not value.isdecimal():
        raise ValueError("prepare_threshold in the URL of a ledger is a whole number, or none: it prepares nothing")
    return int(value)


def _name(options: dict[str, Any]) -> str:
    """What is shown of a database."""
    login = options.get("user", "") + (f":{_HIDDEN}" if options.get("password") else "")
    places, folder = _places(options), options.get("host", "").startswith("/")
    values = {"host": options["host"]} | ({"port": options["port"]} if "port" in options else {}) if folder else {}
    for name, value in options.items():
        if name not in ("user", "password", "host", "port", "dbname", "prepare_threshold"):
            values[name] = _SETTING.sub(rf"\1\2={_HIDDEN}", value) if _PLAIN.fullmatch(name) else _HIDDEN
    query = "&".join(f"{name}={value}" for name, value in values.items())
    return (
        f"postgresql://{login}{'@' if login else ''}{'' if folder else places}/{options.get('dbname', '')}"
        f"{'?' if query else ''}{query}"
    )


def _places(options: dict[str, Any]) -> str:
    """The hosts, each with its port."""
    hosts, ports = options.get("host", "").split(","), options.get("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    named = [f"[{host}]" if ":" in host else host for host in hosts]
    return ",".join(host + (f":{port}" if port else "") for host, port in zip(named, ports, strict=False))
