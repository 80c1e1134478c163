"""The three spellings of a kernel name, brought to one: what Kineto writes.

How to read this file: `normalise` is all that others call. It demangles what begins with `_Z`, then
applies `_SPELLING` line by line: Nsight's casts and lambdas, anonymous namespaces, return types.

    flash_fwd_kernel<…<64, 128>, false>                    Kineto: torch.profiler's Chrome traces
    flash_fwd_kernel<…<(int)64, (int)128>, (bool)0>        Nsight Systems and Nsight Compute
    _Z16flash_fwd_kernelI…ILi64ELi128EELb0EE…              mangled: too long to demangle, or Windows
"""

import re
from dataclasses import dataclass

# A demangled name is at most 8,192 characters (Kineto leaves longer ones mangled, and the beginning
# of those says it all), so reading more would only give hostile input a lever.
_LONGEST = 8192

_SPELLING = (
    (re.compile(r"\(anonymous namespace\)::|<unnamed>::"), ""),
    (re.compile(r"\(bool\)0"), "false"),
    (re.compile(r"\(bool\)1"), "true"),
    (re.compile(r"\((?:unsigned )?(?:int|long|short|char)\)(?=-?\d)"), ""),
    (re.compile(r"\b(\d+)(?:u|l|ul|ull|ll)\b"), r"\1"),  # 2ul, 64u
    (re.compile(r"\[lambda\(([^()\[\]]*)\) \(instance (\d+)\)\]"), r"{lambda(\1)#\2}"),
    (re.compile(r"(?<=>) (?=>)"), ""),
    (re.compile(r"^std::enable_if<.{1,300}?>::type +"), ""),  # its condition may compare: 8>0
    (re.compile(r"void (?=\w)"), ""),  # return types
)
# What ROCm calls the descriptor of a kernel.
_DESCRIPTOR = re.compile(r"(?:\.kd| \[clone \.[\w.]+\])$")
_CUT = re.compile(r"[0-9A-Za-z]*(?:\.\.\.|…)$")


def normalise(name: str) -> str:
    text = _DESCRIPTOR.sub("", name.strip()[:_LONGEST])
    if text.endswith(("...", "…")):
        text = _CUT.sub("…", text)  # a token cut in half would be read wrong
    if text.startswith("_Z"):
        text = _demangle(text)
    for pattern, by in _SPELLING:
        text = pattern.sub(by, text)
    return text


_MANGLED = re.compile(
    r"(?P<length>\d{1,5})|L(?:b(?P<bool>[01])|[a-z](?P<value>n?\d+))E|(?P<std>St)|(?P<lambda>Ul)"
    r"|(?P<same>S[0-9A-Z]*_|T\d*_|S[absiod])|(?P<bf16>DF16b)|(?P<f16>DF16_|Dh)|(?P<open>[NZIJXL])"
    r"|(?P<call>cl)|(?P<close>E\d*_?)|(?P<type>[a-z])|.",
    re.ASCII | re.DOTALL,
)
_BUILTIN = {
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "f": "float",
    "d": "double",
}


@dataclass(slots=True)
class _Open:
    """A bracket that is open; Z awaits a name."""

    bracket: str
    things: int = 0  # inside it so far


def _demangle(text: str) -> str:
    """Readable text of an Itanium-mangled name: one pass, enough for the rules, no more.

    Substitutions (`S1_`: "as before") come out as `?`, pointers and references without their marks.
    """
    out: list[str] = []
    stack = [_Open("Z")]
    glue = False  # the next thing belongs to the last one, as b in a::b

    def begin() -> None:
        nonlocal glue
        top = stack[-1]
        if glue:
            out.append("::")
        elif top.bracket == "Z" and top.things:  # the name is complete, so these are the parameters
            top.bracket = "("
            out.append("(")
        elif top.things:
            out.append("::" if top.bracket == "N" else "" if top.bracket in "ZL" else ", ")
        glue = False
        top.things += 1

    at = 2
    while token := _MANGLED.match(text, at):  # to the end: any character is a token
        at = token.end()
        kind, word = token.lastgroup, token[0]
        if kind == "length" and stack[-1].bracket != "L":
            name, at = text[at : at + int(word)], at + int(word)
            if not name.startswith("_GLOBAL__N_"):
                begin()
                out.append(name)
        elif kind == "bool":
            begin()
            out.append("true" if token["bool"] == "1" else "false")
        elif kind in ("length", "value"):  # a length after L…E's type is an enumerator
            begin()
            out.append((token["value"] or word).replace("n", "-"))
        elif kind == "same":
            if stack[-1].bracket != "N":
                begin()
                out.append("?")
        elif kind in ("bf16", "f16", "type"):
            if word != "v":
                begin()
                out.append({"bf16": "__bf16", "f16": "half"}.get(kind) or _BUILTIN.get(word, "?"))
            elif stack[-1] == _Open("Z", 1):  # no parameters, or the return type of a template
                stack[-1] = _Open("(")
                out.append("(")
        elif kind == "std":
            begin()
            out.append("std")
            glue = True
        elif kind == "call" and stack[-1].bracket == "N":
            begin()
            out.append("operator()")
        elif kind == "lambda":
            begin()
            out.append("{lambda(")
            stack.append(_Open("U"))
        elif kind == "open":
            if word == "I":
                out.append("<")
            elif word != "J":
                begin()
            stack.append(_Open(word))
        elif kind == "close" and len(stack) > 1:
            closed = stack.pop().bracket
            out.append({"I": ">", "(": ")", "U": ")#1}"}.get(closed, ""))
            glue = closed in "Z("
            at = token.end() if closed == "U" else token.start() + 1
    return "".join(out) + (")" if stack[0].bracket == "(" else "")
