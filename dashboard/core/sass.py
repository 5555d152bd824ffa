"""Reads machine code (SASS): the unit and the width of each instruction, the loops, and what differs between two kernels.

The classes follow NVIDIA's list of instructions (CUDA Binary Utilities, "Instruction Set Reference") and the names of the pipelines in
Nsight Compute's Profiling Guide.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

INSTRUCTION_BYTES: Final = 16


class Unit(StrEnum):
    """The unit that executes an instruction, each with the first parts of its `opcodes`."""

    opcodes: tuple[str, ...]

    def __new__(cls, value: str, opcodes: str = "") -> "Unit":
        unit = str.__new__(cls, value)
        unit._value_, unit.opcodes = value, tuple(opcodes.split())
        return unit

    TENSOR = "tensor cores", "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA"
    FP32 = "fp32", "FADD FADD2 FADD32I FMUL FMUL2 FMUL32I FFMA FFMA2 FFMA32I FMNMX FMNMX3 FSET FSETP FSEL FCHK FSWZADD"
    FP16 = "fp16", "HADD2 HADD2_32 HFMA2 HFMA2_32 HMUL2 HMUL2_32 HMNMX2 HSET2 HSETP2"
    FP64 = "fp64", "DADD DFMA DMUL DSETP DMNMX"
    INTEGER = (
        "integer and logic",
        "BMSK BREV FLO IABS IADD IADD3 IADD32I IDP IDP4A IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LOP LOP3 "
        "LOP32I POPC SHF SHL SHR VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 VHMNMX PLOP3 SGXT IADD64 ISETP64",
    )
    SPECIAL = "special functions and conversions", "MUFU F2F F2I I2F I2I FRND I2IP I2FP F2IP F2FP I2HP"
    GLOBAL = (
        "global memory",
        "LD LDG ST STG LDGSTS RED REDG ATOM ATOMG LDGDEPBAR UBLKCP UBLKPF UBLKRED UTMALDG UTMASTG UTMAPF UTMAREDG "
        "UTMACCTL UTMACMDFLUSH MATCH CCTL LDGMC",
    )
    SHARED = "shared memory", "LDS STS LDSM STSM ATOMS STAS REDAS LDAS LDTM STTM UTCCP"
    LOCAL = "local memory", "LDL STL CCTLL"
    CONSTANT = "constants", "LDC ULDC LDCU"
    TEXTURE = "texture", "TEX TLD TLD4 TMML TXD TXQ SUATOM SULD SURED SUST SUQUERY"
    MOVE = "moves", "MOV MOV32I MOVM SEL PRMT S2R CS2R S2UR R2UR R2P P2R B2R R2B UR2R"
    WARP = "exchange within a warp", "SHFL VOTE VOTEU REDUX CREDUX ELECT"
    UNIFORM = "uniform registers"
    SYNC = (
        "synchronisation",
        "BAR SYNCS SYNCSU DEPBAR MEMBAR ERRBAR FENCE WARPGROUP WARPGROUPSET WARPSYNC ACQBULK ARRIVES CGAERRBAR NANOSLEEP "
        "UCGABAR_ARV UCGABAR_WAIT UTCBAR USETMAXREG ACQSHMINIT ENDCOLLECTIVE",
    )
    CONTROL = (
        "control flow",
        ("BRA BREAK BRX BRXU BSSY BSYNC BPT CALL EXIT JMP JMX JMXU KILL PREEXIT RET RPCMOV RTT WARPRET YIELD BMOV NOP PMTRIG"),
    )
    OTHER = "other"


#: Units whose instructions are the arithmetic that a kernel of floating-point numbers is there for.
ARITHMETIC: Final = frozenset({Unit.TENSOR, Unit.FP32, Unit.FP16, Unit.FP64})

_UNITS: Final = {opcode: unit for unit in Unit for opcode in unit.opcodes}
#: Bits a thread of an access, as a part of an opcode.
_WIDTHS: Final = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}
_MEMORY: Final = frozenset({Unit.GLOBAL, Unit.SHARED, Unit.LOCAL})
_WORD_BITS: Final = 32

_TEXT: Final = re.compile(r"(?:@(!?U?P\w+) )?([A-Z][\w.]*)\s*(.*)")
_LINE: Final = re.compile(r"[0-9]{1,9}")
_BRANCHES: Final = ("BRA", "JMP")
#: Opcodes whose last operand is an address, although most of them lead nowhere by themselves.
_WITH_ADDRESS: Final = frozenset({*_BRANCHES, "BSSY", "CALL", "BRX", "JMX", "WARPSYNC"})
#: How compilers put a constant into a register through the arithmetic unit for halves.
_CONSTANT: Final = re.compile(r"HFMA2\S* R\d+, -RZ, RZ, ")
_TARGET: Final = re.compile(r"\b(0x[0-9a-f]+)$")
_REGISTER: Final = re.compile(r"\b(UR|UP|R|P|B|SB)\d+\b")
_REUSE: Final = ".reuse"


@dataclass(frozen=True)
class Instruction:
    """One instruction, such as `@P0 LDG.E.128 R4, [R2.64]`.

    Attributes:
        text: the whole instruction.
        line: its line in the variant's source; 0 where it has none.
    """

    text: str
    line: int = 0

    @cached_property
    def opcode(self) -> str:
        """`LDG.E.128`; empty if the text is not an instruction."""
        match = _TEXT.match(self.text)
        return match[2] if match else ""

    @cached_property
    def unit(self) -> Unit:
        name = self.opcode.split(".")[0]
        if name == "HFMA2" and _CONSTANT.search(self.text):
            return Unit.MOVE
        if name in _UNITS:
            return _UNITS[name]
        return Unit.UNIFORM if name.startswith("U") else Unit.OTHER

    @cached_property
    def name(self) -> str:
        """The opcode with the width of an access, without what changes neither: `LDG.128`, `HMMA.1688`, `FFMA`."""
        first, *parts = self.opcode.split(".")
        if self.unit in _MEMORY:
            width = next((part for part in parts if part in _WIDTHS), "")
            return f"{first}.{width}" if width else first
        if self.unit is Unit.TENSOR:
            return ".".join([first, *(part for part in parts if part[:1].isdigit())][:2])
        return first

    @cached_property
    def bits(self) -> int:
        """Bits that a thread loads or stores; 0 for other instructions."""
        if self.unit not in _MEMORY:
            return 0
        return next((_WIDTHS[part] for part in self.opcode.split(".") if part in _WIDTHS), _WORD_BITS)

    @cached_property
    def target(self) -> int | None:
        """Where a branch leads, as the place of an instruction; None for other instructions."""
        if self.opcode.split(".")[0] not in _BRANCHES or not (match := _TARGET.search(self.text)):
            return None
        return int(match[1], 16) // INSTRUCTION_BYTES

    @cached_property
    def normal(self) -> str:
        """The text without what differs between equal code: numbers of registers, addresses of code, reuse of operands."""
        text = _REGISTER.sub(r"\1", self.text.replace(_REUSE, ""))
        return _TARGET.sub("…", text) if self.opcode.split(".")[0] in _WITH_ADDRESS else text


@dataclass(frozen=True)
class Loop:
    """Instructions that are repeated: from the target of a branch backwards to that branch.

    Attributes:
        first, last: places of its first and last instruction.
        depth: how many loops are around it.
        innermost: it has no loop inside.
    """

    first: int
    last: int
    depth: int
    innermost: bool

    def __len__(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class Code:
    """The instructions of one kernel."""

    instructions: tuple[Instruction, ...]

    @classmethod
    def of(cls, sass: str, lines: str) -> "Code":
        """The code of a row of `machine_code`."""
        numbers = [int(line) if _LINE.fullmatch(line) else 0 for line in lines.split("\n")]
        texts = sass.split("\n") if sass else []
        return cls(tuple(Instruction(text, numbers[place] if place < len(numbers) else 0) for place, text in enumerate(texts)))

    def __len__(self) -> int:
        return len(self.instructions)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The loops, in the order of their first instructions."""
        ends: dict[int, int] = {}
        for place, instruction in enumerate(self.instructions):
            target = instruction.target
            if target is not None and target < place:
                ends[target] = max(place, ends.get(target, 0))
        spans = sorted(ends.items(), key=lambda span: (span[0], -span[1]))
        return tuple(
            Loop(
                first,
                last,
                sum(a < first and last <= b for a, b in spans),
                not any(first < a and b <= last for a, b in spans),
            )
            for first, last in spans
        )

    def of_loop(self, loop: Loop) -> tuple[int, ...]:
        """The places of a loop's own instructions: those that are not in a loop inside it."""
        inner = [each for each in self.loops if each != loop and loop.first <= each.first and each.last <= loop.last]
        return tuple(
            place for place in range(loop.first, loop.last + 1) if not any(each.first <= place <= each.last for each in inner)
        )

    def hot_loop(self, executed: Mapping[int, int] | None = None) -> Loop | None:
        """The loop whose own instructions are executed most often; None where the kernel has no loop.

        Args:
            executed: how often each instruction was executed. Without counts, the loop with the most arithmetic is taken, and of those
                the longest.
        """

        def weight(loop: Loop) -> tuple[int, int]:
            own = self.of_loop(loop)
            if executed:
                return sum(executed.get(place, 0) for place in own), len(own)
            return sum(self.instructions[place].unit in ARITHMETIC for place in own), len(own)

        return max(self.loops, key=weight, default=None)

    def mix(self, loop: Loop | None = None) -> Counter[tuple[Unit, str]]:
        """How many instructions of each unit and name there are: a loop's own ones, or those of all of the code."""
        places = self.of_loop(loop) if loop else range(len(self))
        return Counter((self.instructions[place].unit, self.instructions[place].name) for place in places)

    def arithmetic_share(self, loop: Loop | None = None) -> float:
        """The share of floating-point arithmetic and tensor instructions, from 0 to 1; 0 for a kernel without instructions."""
        mix = self.mix(loop)
        return sum(count for (unit, _), count in mix.items() if unit in ARITHMETIC) / max(1, mix.total())


@dataclass(frozen=True)
class Piece:
    """A part of a comparison of two kernels: instructions `a_first` to before `a_end` became `b_first` to before `b_end`."""

    same: bool
    a_first: int
    a_end: int
    b_first: int
    b_end: int


def difference(a: Code, b: Code) -> tuple[Piece, ...]:
    """The differences between two kernels, apart from numbers of registers and addresses, by the fewest insertions and removals."""
    from rapidfuzz.distance import Indel  # few runs need its fifty modules

    opcodes = Indel.opcodes([each.normal for each in a.instructions], [each.normal for each in b.instructions])
    joined: list[Piece] = []
    for each in opcodes:
        piece = Piece(each.tag == "equal", each.src_start, each.src_end, each.dest_start, each.dest_end)
        if joined and joined[-1].same == piece.same:  # a removal and the insertion at its place
            before = joined.pop()
            piece = Piece(piece.same, before.a_first, piece.a_end, before.b_first, piece.b_end)
        joined.append(piece)
    return tuple(joined)
