"""What a GPU computes at the ends of its numbers, on a machine for PTX that is tested first.

Each scalar operation is its meaning there, and primitives theirs, by the examples of their blocks;
faults are planted in both. `LARGE=1` takes all examples, and another processor.
"""

from dataclasses import replace

import numpy as np
import pytest

import minijax as jax
from minijax.compiler import instructions
from minijax.compiler.loops import OPS, Buffer, Constant, Kernel, Launch, Scalar, Store
from minijax.compiler.schedule import lower_to_kernel
from minijax.compiler.scalars import BOOL, INT64, NumpyScalars
from minijax.compiler.targets import launches, ptx, special_functions
from minijax.compiler.targets.emulator import Refused
from minijax.primitives.infix import infix
from tests.compiler.targets.ptx_machine import PtxMachine, run_ptx
from tests.compiler.targets.test_every_primitive import words
from tests.compiler.test_elementary import FUNCTIONS, samples, units
from tests.compiler.test_llvm import CASES, CONVERSIONS, NARROW, assert_same, combinations, edges
from tests.compiler.test_numba_text import elementwise
from tests.running_text import laid_out
from tests.test_laws import LARGE, LONG, PRIMITIVES, cases, same

LARGEST = 1000  # numbers in an argument, at most
SERIES = set() if LARGE else {"igammac", "igamma_grad_a"}  # long ones, as that of igamma


@pytest.fixture(params=["sm_80", "sm_90"] if LARGE else ["sm_80"], autouse=True)
def processor(request, monkeypatch):
    """What LLVM compiles for, and the machine is."""
    monkeypatch.setattr(PtxMachine, "processor", request.param)


# ── The machine ──────────────────────────────────────────────────────────────────────────────

ENTRY = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry launch_0(
	.param .u64 launch_0_param_0
)
.maxntid {threads}
{{
	.reg .pred %p<9>;
	.reg .b16 %rs<9>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.b64 %rd1, [launch_0_param_0];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, {size};
	add.s64 %rd3, %rd1, %rd2;
{body}
	st.global.b{bits} [%rd3], {result};
	ret;
}}
"""


class Written(PtxMachine):
    """A machine whose programs are written here."""

    text = ""

    def texts(self, kernel):
        return [self.text]


class Listing(PtxMachine):
    """A machine that keeps the text of its program."""

    def texts(self, kernel):
        self.text = "".join(texts := super().texts(kernel))
        return texts


def ran(body, result, dtype, threads=32):
    """What each thread has in a register after some instructions."""
    dtype = np.dtype(dtype)
    out = Buffer("out", dtype, (threads,), "output")
    store = Store(out, (Constant(np.int64(0), INT64),), Constant(dtype.type(0), dtype))
    launch = Launch(Scalar("block", INT64), 1, Scalar("thread", INT64), threads, (store,))
    machine = Written()
    machine.text = ENTRY.format(threads=threads, size=dtype.itemsize, bits=8 * dtype.itemsize,
                                body=body.replace("; ", ";\n"), result=result)
    made = Kernel("k", (), (out,), (), (), 0, {}, (launch,))
    return run_ptx(made, [], machine=machine)[0]


# What NVIDIA's manual says: instructions, the register that has the result, its dtype, the result.
SAID = {
    "a shift by the width": ("mov.b32 %r2, 5; shl.b32 %r3, %r2, 32;", "%r3", "u4", 0),
    "a shift beyond the width": ("mov.b32 %r2, -5; shr.s32 %r3, %r2, 77;", "%r3", "i4", -1),
    "zeros come in": ("mov.b64 %rd4, -5; shr.u64 %rd5, %rd4, 64;", "%rd5", "u8", 0),
    "a funnel wraps": ("mov.b32 %r2, 1; mov.b32 %r3, 2; shf.l.wrap.b32 %r4, %r2, %r3, 33;",
                       "%r4", "u4", 4),
    "an upper half": ("mov.b64 %rd4, -1; mul.hi.u64 %rd5, %rd4, %rd4;", "%rd5", "u8", 2**64 - 2),
    "a signed upper half": ("mov.b64 %rd4, -3; mul.hi.s64 %rd5, %rd4, 5;", "%rd5", "i8", -1),
    "a conversion above": ("mov.b32 %r2, 0f7F800000; cvt.rzi.s32.f32 %r3, %r2;",
                           "%r3", "i4", 2**31 - 1),
    "a conversion below": ("mov.b32 %r2, 0fBF800000; cvt.rzi.u32.f32 %r3, %r2;", "%r3", "u4", 0),
    "a conversion of nan": ("mov.b32 %r2, 0f7FC00000; cvt.rzi.s32.f32 %r3, %r2;", "%r3", "i4", 0),
    "one to many bits": ("mov.b64 %rd4, 0d7FF8000000000000; cvt.rzi.s64.f64 %rd5, %rd4;",
                         "%rd5", "i8", -2**63),
    "signs are extended": ("mov.b32 %r2, 511; cvt.s32.s8 %r3, %r2;", "%r3", "i4", -1),
    "ties to even": ("mov.b32 %r2, 16777217; cvt.rn.f32.s32 %r3, %r2;", "%r3", "f4", 2.**24),
    "a minimum with nan": ("mov.b32 %r2, 0f7FC00000; min.f32 %r3, %r2, 0f40000000;",
                           "%r3", "f4", 2),
    "a minimum that is nan": ("mov.b32 %r2, 0f7FC00000; min.NaN.f32 %r3, %r2, 0f40000000;",
                              "%r3", "u4", 0x7FFFFFFF),
    "zeros have an order": ("mov.b32 %r2, 0f80000000; max.f32 %r3, %r2, 0f00000000;",
                            "%r3", "u4", 0),
    "the sign of the first": ("mov.b32 %r2, 0f80000000; copysign.f32 %r3, %r2, 0f40000000;",
                              "%r3", "f4", -2),
    "a flushed subnormal": ("mov.b32 %r2, 0f80000001; add.rn.ftz.f32 %r3, %r2, 0f80000000;",
                            "%r3", "u4", 1 << 31),
    "a subnormal": ("mov.b32 %r2, 0f00000001; add.rn.f32 %r3, %r2, 0f00000001;", "%r3", "u4", 2),
    "unordered": ("mov.b32 %r2, 0f7FC00000; setp.ltu.f32 %p1, %r2, %r2; "
                  "selp.b32 %r3, 1, 2, %p1;", "%r3", "u4", 1),
    "ordered": ("mov.b32 %r2, 0f7FC00000; setp.ne.f32 %p1, %r2, %r2; selp.b32 %r3, 1, 2, %p1;",
                "%r3", "u4", 2),
    "a field": ("mov.b32 %r2, 240; bfe.s32 %r3, %r2, 4, 4;", "%r3", "i4", -1),
    "a field is replaced": ("mov.b32 %r2, 21; mov.b32 %r3, -1; bfi.b32 %r4, %r2, %r3, 4, 4;",
                            "%r4", "u4", 0xFFFFFF5F),
    "a long field": ("mov.b64 %rd4, -1; mov.b64 %rd5, 3; bfi.b64 %rd6, %rd4, %rd5, 60, 9;",
                     "%rd6", "u8", 0xF000000000000003),
    "a product of bytes": ("mov.b32 %r2, -16645372; mov.b32 %r3, 0x1010101U; "
                           "dp4a.s32.u32 %r4, %r2, %r3, 10;", "%r4", "u4", 18),
    "bytes are chosen": ("mov.b32 %r2, 305419896; prmt.b32 %r3, %r2, 0, 0x123U;",
                         "%r3", "u4", 0x78563412),
    "two in a word": ("mov.b32 %r2, 0f40000000; mov.b32 %r3, 0fBF800000; "
                      "cvt.rn.f16x2.f32 %r4, %r2, %r3;", "%r4", "u4", 0x4000BC00),
    "one rounding": ("mov.b32 %r2, 0f3F800001; fma.rn.f32 %r3, %r2, %r2, 0fBF800002;",
                     "%r3", "f4", 2.**-46),
    "rounding toward zero": ("mov.b32 %r2, 0f33C00000; "
                             "fma.rz.f32 %r3, %r2, 0f3F800000, 0f3F800000;", "%r3", "f4", 1),
    "leading zeros": ("mov.b64 %rd4, 1; clz.b64 %r3, %rd4;", "%r3", "u4", 63),
    "two words of one": ("mov.b64 %rd4, -2; mov.b64 {_, %r3}, %rd4;", "%r3", "i4", -1),
    "a neighbour": ("shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;", "%r3", "u4", np.arange(32) ^ 1),
    "threads part": ("mov.b32 %r3, 7; setp.gt.u32 %p1, %r1, 3; @%p1 bra $L1;\n"
                     "add.s32 %r3, %r1, 1;\n$L1:\nadd.s32 %r3, %r3, 1;", "%r3", "u4",
                     np.where(np.arange(32) > 3, 8, np.arange(32) + 2)),
}


@pytest.mark.parametrize("what", SAID)
def test_an_instruction_does_what_the_manual_says(what):
    body, register, dtype, result = SAID[what]
    assert (ran(body, register, dtype) == np.array(result).astype(dtype)).all()


@pytest.mark.parametrize(("body", "why"), [
    ("sad.s32 %r3, %r1, %r1, %r1;", "no row says what sad.s32 means"),
    ("mov.b16 %rs1, 0; add.rn.bf16 %rs2, %rs1, %rs1;", "sm_80 has no add.rn.bf16"),
    ("setp.gt.u32 %p1, %r1, 3; @%p1 bra $L1;\nbar.sync 0;\n$L1:\nmov.b32 %r3, 0;",
     "28 threads do not reach a barrier"),
    ("setp.gt.u32 %p1, %r1, 3; @%p1 bra $L1;\nshfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;\n$L1:\n"
     "mov.b32 %r3, 0;", "not those of its mask"),
    ("ld.global.b64 %rd4, [%rd3+4];", "misaligned"),
    ("ld.global.b32 %r3, [%rd3+4096];", "nothing is allocated"),
    (".loc 1 2 3", "is not understood")])
def test_the_machine_refuses(body, why):
    with pytest.raises(Refused, match=why):
        ran(body, "%r3", "u4")


# ── Each scalar operation ────────────────────────────────────────────────────────────────────

# Floats between a result and the truth (of erf_inv, the usual formula), where the special function
# unit errs as much as the manual allows. JAX's documentation has 2 units for its exp on a GPU, 5.5
# for tanh, 4 for logistic and 6.5 for erf.
UNITS = {"exp": 2, "tanh": 3, "logistic": 3, "log": 1, "log1p": 1, "erf": 2, "erf_inv": 2}


def assert_near(name, got, expected):
    """Equal where the result is special, near elsewhere."""
    numbers = np.isfinite(expected) & (expected != 0)
    assert_same(got[~numbers], expected[~numbers])
    distance = units(got[numbers], expected[numbers])
    assert distance.max(initial=0) <= UNITS[name], name


def computed(rows):
    """The results of rows of `elementwise`, a thread for each number."""
    made = elementwise(rows)
    body = tuple(replace(each, vectorize="parallel") for each in made.body)
    kernel = launches.scheduled(replace(made, body=body))
    return run_ptx(kernel, [x for row in rows for x in row[3]])


def check(rows, expected):
    """Rows of `elementwise` have these results."""
    for x, y, (op, _, dtype, _) in zip(computed(rows), expected, rows, strict=True):
        y = np.asarray(y)
        try:
            if op.name in UNITS and dtype == np.float32:
                assert_near(op.name, x, y)
            else:
                assert_same(x, y)
        except AssertionError as error:
            raise AssertionError(f"{op.name} of {dtype}: {error}") from None


@pytest.mark.parametrize("name", special_functions.FORMULAS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_function_of_the_special_function_unit_is_near_the_truth(name):
    usual = lambda x: OPS[name].meaning(x.astype(np.float32))  # of erf_inv, as JAX has it
    truth, intervals = FUNCTIONS.get(name, (usual, [(-1, 1), (0.99, 1)]))
    x = samples(np.float32, intervals, LARGE and 1_000_000 or 4_000)
    [got] = computed([(OPS[name], [x.dtype], x.dtype, [x])])
    assert_near(name, got, truth(x.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("dtype", dict.fromkeys(dtype for _, dtype in CASES), ids=str)
def test_each_operation_is_its_meaning_at_every_edge(dtype):
    rows = []
    for op in (op for op, kind in CASES if kind == dtype):
        kinds = [BOOL] * (op.name == "select") + [dtype] * (op.arity - (op.name == "select"))
        rows.append((op, kinds, BOOL if op.result == "bool" else dtype, combinations(kinds)))
    check(rows, [op.meaning(*arrays) for op, _, _, arrays in rows])


@pytest.mark.parametrize("target", dict.fromkeys(to for _, to in CONVERSIONS), ids=str)
def test_each_conversion_is_its_meaning_at_every_edge(target):
    rows = []
    for source in (a for a, b in CONVERSIONS if b == target):
        x = edges(source)
        if source.kind == "f" and source not in NARROW:
            limits = 2.0 ** np.arange(-160, 128, 0.25)
            x = np.concatenate([x, limits, -limits, limits + 0.5]).astype(source)
        rows.append((OPS["convert"], [source], target, [x]))
    check(rows, [OPS["convert"].meaning(arrays[0], target) for _, _, _, arrays in rows])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_quotient_by_what_a_loop_does_not_change_is_the_nearest():
    x, y = np.random.default_rng(0).integers(0, 1 << 32, (2, 50_000)).astype("u4").view("f4")
    special = np.float32([0, -0., 1, -1, 6, np.inf, -np.inf, np.nan, 1e-45, 3e-39, 3e38])
    x, y = (np.concatenate(pair) for pair in zip(
        (x[np.abs(x) >= 2.**-100][:40_000], y[:40_000]),
        map(np.ravel, np.meshgrid(special[:8], special)), strict=True))
    assert_same(infix(special_functions.quotient)(NumpyScalars(), x, y), x / y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_quotient_by_a_constant_is_the_nearest():
    bits = np.random.default_rng(0).integers(0, 1 << 32, 20_000).astype("u4")
    x = np.concatenate([bits.view("f4"), np.float32([0, -0., np.inf, -np.inf, np.nan, 3e38])])
    x = x[(x == 0) | ~(np.abs(x) < 2.**-90)]
    for y in (2 ** 0.5, -3, 0.1, 255):
        y, (high, low) = np.float32(y), special_functions.reciprocal(np.float32(y))
        product = OPS["fma"].meaning(x, np.full_like(x, high), x * np.float32(low))
        assert_same(product, x / y)
    assert special_functions.reciprocal(np.float32(1.3031949)) is None  # one x would be wrong


def test_a_row_is_divided_without_a_division_for_each_number():
    x = np.random.default_rng(0).normal(size=(128, 600)).astype(np.float32)
    source = lower_to_kernel(jax.make_jaxpr(lambda x: x / x.max(1, keepdims=True) / 3)(x), "f",
                             on_gpu=True)
    [out] = run_ptx(launches.scheduled(source), [x], machine=(machine := Listing()))
    assert_same(out, x * (1 / x.max(1, keepdims=True)) * np.float32(1 / 3))
    assert machine.text.count("div.rn") + machine.text.count("rcp.rn") == 1


# ── Each primitive ───────────────────────────────────────────────────────────────────────────

def as_ptx(f, args, seed=0):
    """The results of a function on the machine, as they lie there."""
    source = lower_to_kernel(jax.make_jaxpr(f)(*args), "f", on_gpu=True)
    inputs = [laid_out(words(x), buffer) for x, buffer in zip(args, source.inputs, strict=True)]
    return run_ptx(launches.scheduled(source), inputs, seed)


def is_special(case):
    """Whether a number is nan, infinite, or so large that its square is."""
    xs = [words(x) for x in case.args]
    return any(x.dtype.kind == "f" and not (np.abs(x) < np.finfo(x.dtype).max ** .5).all()
               for x in xs)


def chosen(name):
    """The examples for the machine: the first, and the first with special numbers."""
    few = [c for c in cases(PRIMITIVES[name]) if all(words(x).size <= LARGEST for x in c.args)]
    special = [c for c in few[1:] if name not in LONG and is_special(c)]
    return few if LARGE else few[:1] + special[:1]


@pytest.mark.parametrize("name", [name for name in PRIMITIVES if name not in SERIES])
def test_a_primitive_is_its_meaning(name):
    for seed, case in enumerate(chosen(name)):
        with case.mode():
            meaning = [words(x) for x in case.run(*case.args)]
            outs = as_ptx(case.run, case.args, seed)
            same([x.view(y.dtype).reshape(y.shape) if y.dtype.kind == "c" else x
                  for x, y in zip(outs, meaning, strict=True)], meaning, case)


# ── Faults ───────────────────────────────────────────────────────────────────────────────────

def of_llvm(monkeypatch):
    """Shifts and remainders as LLVM has them for this target."""
    monkeypatch.delattr(ptx.LaunchText, "print_let")


def unlimited(monkeypatch):
    """Conversions without a look at what is out of range."""
    monkeypatch.setattr(instructions, "_saturated", lambda x, dtype: instructions.plain(
        f"fpto{instructions.SIGNS[dtype.kind]}i {{s}} {{x}} to {{t}}", x, dtype=dtype))


def flushing(monkeypatch):
    """Arithmetic that takes subnormal numbers for zeros."""
    monkeypatch.setattr(ptx, "compile_cached", lambda text, processor: ptx.compile(text.replace(
        ' "nvvm.maxntid"', ' "denormal-fp-math"="preserve-sign" "nvvm.maxntid"'), processor))


def without_rare_cases(monkeypatch):
    """Functions whose usual formula is used everywhere."""
    monkeypatch.delattr(ptx.LaunchText, "elementary")


operation, conversion = (test_each_operation_is_its_meaning_at_every_edge,
                         test_each_conversion_is_its_meaning_at_every_edge)
FAULTS = {
    "a shift beyond the width": (of_llvm, operation, np.dtype("int64"), "shl of"),
    "a remainder of many digits": (of_llvm, operation, np.dtype("float32"), "rem of"),
    "a conversion out of range": (unlimited, conversion, np.dtype("int8"), "convert of"),
    "a nan of many bits": (unlimited, conversion, np.dtype("int64"), "convert of"),
    "a flushed subnormal": (flushing, operation, np.dtype("float32"), "add of"),
    "a huge angle": (without_rare_cases, operation, np.dtype("float32"), "sin of"),
    "a huge angle in a law": (without_rare_cases, test_a_primitive_is_its_meaning, "cos", "cos"),
    "a remainder in a law": (of_llvm, test_a_primitive_is_its_meaning, "rem", "rem"),
}


@pytest.mark.of_tests
@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_found(monkeypatch, what):
    plant, test, subject, words_of_it = FAULTS[what]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=words_of_it):
        test(subject)
