"""What else tells of its maker, for a file that is to be published: rules that cost more than
reading, so that only an upload asks them.

How to read this file: `RULES` name a kind, a pattern, and how what was found is told; the group
`told` is what may stand in the example, and nothing else ever does. Tokens are known by the
beginnings that their issuers document, hosts and users by the names under which schedulers and
shells keep them. Rules of a library were looked at (detect-secrets): they go line by line, and a
trace may be one line; they know neither hosts nor paths, and half of these tokens.
"""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

Found = tuple[int, str, str, int]  # as privacy has it: beginning, kind, example, its string


@dataclass(frozen=True)
class Rule:
    """What is of one kind. Without any of the words in `needs`, in small letters, nobody looks."""

    kind: str
    pattern: re.Pattern[bytes]
    needs: tuple[bytes, ...]


def _rule(kind: str, needs: str, *pattern: str, flags: int = 0) -> Rule:
    words = tuple(word.encode() for word in needs.split())
    return Rule(kind, re.compile("".join(pattern).encode(), flags), words)


# Between the name of a setting and its value, in a shell, in Python and in JSON (in a string, too).
_IS = r"""\\?["']?\s{0,3}[:=]\s{0,3}\[?\\?["']?"""
# No value that tells anything.
_TELLING = (
    r"""(?!(?:localhost|unknown|none|null|true|false|\d+|127\.\S*|0\.0\.0\.0|::1|\*+|x+)\b"""
    r"""|\*|<|\$|\{|%[sd(])"""
)
_BEGIN, _END = r"(?<![\w.-])", r"(?![\w-])"  # of a word
_OF_SYSTEM = r"(?!(?:usr|lib|lib64|bin|sbin|etc|proc|sys|dev|opt)/)"
_OPTION = _BEGIN + r"-[A-Za-z,-]{1,16}"  # -I/home/…
_AT = r"(?<![\w.+-])[a-z_][\w.-]{0,31}@"
_POD = "[bcdfghjklmnpqrstvwxz2456789]"  # letters of the names that Kubernetes makes

_TOKENS = (
    r"sk_(?:live|test)_\w{16}", r"rk_(?:live|test)_\w{16}", r"whsec_\w{24}",
    r"gl[a-z]{2,5}-[\w-]{16}", r"GOCSPX-[\w-]{20}", r"SG\.[\w-]{16,32}\.[\w-]{16}",
    r"SK[0-9a-f]{32}\b", r"do[opr]_v1_[0-9a-f]{32}", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{24}",
    r"dapi[0-9a-f]{32}", r"lin_api_\w{24}", r"gsk_\w{32}", r"r8_\w{30}", r"pplx-\w{32}",
    r"dckr_pat_[\w-]{20}", r"nvapi-[\w-]{32}", r"dp\.[a-z]{2,4}\.\w{32}", r"hv[sbr]\.[\w-]{24}",
    r"ATATT3[\w-]{24}", r"\w{14}\.atlasv1\.[\w-]{32}", r"xai-\w{32}", r"ntn_\w{32}",
    r"[0-9a-f]{32}-us\d{1,2}\b", r"\d{8,10}:AA[\w-]{32,33}", r"AGE-SECRET-KEY-1\w{32}",
    r"PuTTY-User-Key-File", r"ops_eyJ\w{32}", r"EAA[A-Za-z0-9]{60}", r"sq0(?:atp|csp)-[\w-]{20}",
    r"PMAK-[0-9a-f]{20}", r"figd_[\w-]{30}", r"AKC\w{60}",
)  # fmt: skip
_SECRETS = "passw passphrase secret token key credential"

RULES = (
    # ── Tokens ──
    _rule("token", "", rf"{_BEGIN}(?:{'|'.join(_TOKENS)})"),
    _rule("token", "hooks.slack.com /api/webhooks/",
          r"(?P<told>hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/)\w"),
    _rule("token", _SECRETS,
          r"(?P<told>passw(?:or)?d|passphrase|secret|token|(?:api|access|auth|secret|private|account"
          r"|shared)_?key|private_key_id|credentials?)", _IS, _TELLING, r"[^\s\"'\\,;)}\]]{8}",
          flags=re.I),
    _rule("token", "authorization", r"(?P<told>authorization)", _IS,
          r"(?:(?:bearer|basic|token)\s+)?[\w+/=.-]{8}", flags=re.I),
    _rule("token", "bearer", r"\b(?P<told>Bearer )[\w+/=.~-]{16}"),
    _rule("token", "login", r"\b(?P<told>machine )\S{1,80} login \S{1,80} password \S"),
    _rule("token", "? &", r"[?&](?P<told>(?:api_?key|(?:\w{1,20}_)?token|sig|auth|password|secret"
          r"|key|(?:x-(?:amz|goog)-)?signature)=)[\w%+/.~-]{8}", flags=re.I),
    _rule("token", "@", r"(?<=://)(?::[^/\s\"@\\]{1,200}|[^/\s\"@:\\]{8,200})@"),
    # ── Addresses ──
    _rule("IP address", ".",
          r"(?<![<>~!=]=)(?<=[=:])(?!(?:127|0)\.)(?P<told>\d{1,3})(?:\.\d{1,3}){3}(?![\w.])"),
    _rule("hardware address", ":", r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])"),
    # ── Paths ──
    _rule("personal path", "/home/ /users/", rf"(?:(?<![\w./-])|{_OPTION}=?|file://[\w.-]{{1,80}})",
          r"(?P<told>/(?:home|Users|export/home)/)(?!Shared/)[^/\s\"'\\]"),
    _rule("personal path", "/root/", _OPTION, r"=?(?P<told>/root/)"),
    _rule("path", "/", _OPTION, rf"(?P<told>/){_OF_SYSTEM}[\w.+@~-]{{1,80}}/\w"),
    _rule("personal path", "~", r"(?<![\w.)/])(?P<told>~)[a-z][\w-]{1,30}/[\w.]"),
    _rule("path", "/afs/ /gpfs/ /lustre/ /nfs/ /scratch/ /fsx/ /efs/ /beegfs/",
          r"(?<![\w./-])(?P<told>/(?:afs|gpfs|lustre|nfs|scratch|fsx|efs|beegfs)/)[\w.-]+/\w"),
    _rule("path", "//", r"(?<![\w:/])(?P<told>//)[A-Za-z][\w.-]{1,62}/[\w.$-]{1,80}/\w"),
    # In JSON a backslash is two.
    _rule("path", "\\\\", r"(?<![\\\w])(?P<told>(?:\\\\){1,2})[A-Za-z0-9][\w.-]{1,62}\\{1,2}",
          r"[\w.$-]{2,80}"),
    _rule("path", ":\\\\", r"(?<![A-Za-z0-9])(?P<told>[A-Za-z]:)\\\\[\w .-]{1,60}\\\\\w"),
    _rule("path", "://", r"\b(?P<told>(?:s3a?|gs|gcs|az|abfss?|wasbs?|hdfs|r2)://)[\w.-]{3}"),
    # ── Hosts and users ──
    _rule("host name", "slurm pbs_o lsb_ kubernetes master_addr name pod host node",
          r"(?<![A-Za-z0-9])(?P<told>SLURM\w*(?:NODE|HOST|ADDR)\w*|PBS_O_HOST|LSB_\w*HOSTS?"
          r"|KUBERNETES_\w*(?:HOST|ADDR)|MASTER_ADDR|(?:spec\.)?node_?name|host_?name"
          r"|pod_?(?:name|ip)|host_?ip|node_?ip|node_?list)", _IS, _TELLING, r"[\w.:-]{2}",
          flags=re.I),
    _rule("host name", "host=", rf"(?<![A-Za-z0-9])(?P<told>HOST)={_TELLING}[\w.-]{{2}}"),
    _rule("user name", "user logname pbs_o slurm_job",
          r"(?<![A-Za-z0-9])(?P<told>USER|LOGNAME|USERNAME|SUDO_USER|NB_USER|PBS_O_LOGNAME"
          r"|SLURM_JOB_(?:USER|ACCOUNT))", _IS, _TELLING, r"[\w.-]"),
    _rule("host name", "@", _AT, r"(?=[\w-]*[\d-])[A-Za-z][\w-]{1,62}(?![\w.(@-])"),
    _rule("host name", "@", _AT, r"[A-Za-z][\w-]{1,62}:[~/]"),
    _rule("host name", "ip-", r"(?<![\w-])(?P<told>ip-)\d{1,3}(?:-\d{1,3}){3}(?![\w-])"),
    _rule("host name", "gke-",
          rf"(?<![\w-])(?P<told>gke-)[a-z0-9-]{{3,80}}-[a-z0-9]{{8}}-[a-z0-9]{{4}}{_END}"),
    _rule("host name", "-vmss", rf"(?<![\w-])(?P<told>aks-)\w{{1,20}}-\d{{8}}-vmss\w{{6}}{_END}"),
    _rule("host name", "-",
          rf"(?<![\w-])[a-z][a-z0-9-]{{1,60}}-{_POD}{{8,10}}-{_POD}{{5}}{_END}"),
    _rule("host name", "dgx hgx gpu- node- compute- login- worker-",
          r"(?<![\w-])(?P<told>dgx|hgx|gpu|node|compute|login|worker)(?:-[a-z0-9]{1,12}){0,3}",
          rf"-\d{{1,5}}{_END}"),
    _rule("host name", "nid dgx", rf"(?<![\w-])(?P<told>nid\d|dgx\d)\d{{1,6}}{_END}"),
    _rule("host name", ".cluster.local",
          r"(?<![\w.-])[a-z][\w-]*(?:\.[\w-]+)*\.(?P<told>(?:svc\.)?cluster\.local)\b"),
    _rule("host name", ".internal .local .lan .corp .intranet .home.arpa .ts.net",
          r"(?<![\w.-])(?=[\w.-]*[\d-])[A-Za-z][\w-]{1,62}(?:\.[\w-]{1,62}){0,4}"
          r"\.(?P<told>internal|local|lan|corp|intranet|home\.arpa|ts\.net)(?![\w.(-])"),
    _rule("host name", ".lan .home.arpa",
          r"(?<![\w.-])[A-Za-z][\w-]{1,62}\.(?P<told>lan|home\.arpa)(?=[\"':/\s])"),
    _rule("host name", ".corp. .int.",
          r"(?<![\w.-])[a-z][\w-]{0,62}\.(?:[\w-]{1,62}\.)?(?P<told>corp|int)\.[a-z][\w-]{1,62}"
          r"\.[a-z]{2,4}(?![\w.(-])"),
)  # fmt: skip

# Colons of hexadecimal numbers: an IPv6 address, if it is one.
_COLONS = re.compile(rb"(?<![\w:.])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")


def disclosures(data: bytes, start: int, full: set[str]) -> Iterator[tuple[str, Found]]:
    """What the rules find from `start` on, each with its rule, but of kinds that are `full`."""
    small = data[start:].lower()
    for rule in RULES:
        if rule.kind in full or (rule.needs and not any(word in small for word in rule.needs)):
            continue
        for match in rule.pattern.finditer(data, start):
            told = match.groupdict().get("told") or match[0][:2]
            example = f"{told.decode(errors='replace')}…"
            yield rule.pattern.pattern.decode(), (match.start(), rule.kind, example, match.start())
    if "IP address" not in full and data.find(b":", start) >= 0:
        for match in _COLONS.finditer(data, start):
            if _is_address(match[0].decode()):
                example = f"{match[0][:2].decode()}…"
                yield "IPv6", (match.start(), "IP address", example, match.start())


def _is_address(text: str) -> bool:
    """Whether it is a host's IPv6 address, and no C++ name of hexadecimal letters, no time."""
    groups = [group for group in text.split(":") if group]
    if len(groups) < 3 or not any(letter.isdigit() for letter in text):
        return False
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


_ESCAPED = re.compile(rb"\\u00([2-7][0-9a-fA-F])|%([2-7][0-9a-fA-F])|\\/")


def unescaped(blocks: Iterator[bytes]) -> Iterator[bytes]:
    r"""The text with plain characters for what JSON and URLs write otherwise: \/, \u002f, %2F."""
    rest = b""
    for block in blocks:
        data = rest + block
        cut = max(data.rfind(b"\\", len(data) - 5), data.rfind(b"%", len(data) - 2))
        rest = data[cut:] if cut >= 0 else b""
        yield _ESCAPED.sub(_plain, data[: len(data) - len(rest)])
    yield rest


def _plain(match: re.Match[bytes]) -> bytes:
    code = match[1] or match[2]
    if code is None:
        return b"/"
    letter = bytes([int(code, 16)])
    return match[0] if letter in b'"\\' else letter  # a quote in a string does not end it
