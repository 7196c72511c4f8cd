"""What a kernel may call by name, on addresses and int64 numbers: routines of BLAS and LAPACK,
whose matrices lie by columns, and one of our own, for a block of a product.

Stands on loops.py; library.py finds the library's. Chapter 24.
In JAX: jaxlib's LAPACK kernels, and the dot emitters on Eigen and oneDNN.
"""

import re

from minijax.primitives.summation import LONG

from .loops import Call, Constant

LIBRARY = "blas_"  # before the name of a routine
# Fortran takes everything by its address: that of an int64 is also that of its low bytes, of a
# letter, or of an int32, whichever integers the library has. The lengths of letters come last, all
# 1; no routine has more of them, and more arguments than it looks at do no harm.
LENGTHS = ["i64 1"] * 4
BLOCK = r"block_(float\d\d)_(\d+)x(\d+)"  # of so many rows and columns
ALONE = "minijax_blas"  # of pool.py: from 1 to -1 the library uses one thread


def is_library_call(external: str) -> bool:
    return external.startswith(LIBRARY)


def definition(name: str) -> str:
    """LLVM text that defines a block."""
    dtype, rows, columns = re.fullmatch(BLOCK, name).groups()  # type: ignore[union-attr]
    return _block(name, dtype, int(rows), int(columns))


def work(call: Call) -> float | None:
    """About how many simple operations a call takes the time of, where that is known."""
    match, k = re.fullmatch(BLOCK, call.external), call.args[5:6]
    if match is None:
        return None
    terms = int(k[0].value) if isinstance(k[0], Constant) else LONG
    return int(match[2]) * int(match[3]) * terms / 2


def _block(name: str, dtype: str, rows: int, columns: int) -> str:
    """A block of a product, of `k` terms each: its sums stay in registers while they go by.

    A row of y and of the result, of `stop` numbers, is a vector, and the next begins `step` or
    `below` numbers after it. Rows before `row` and columns before `column` are left as they are;
    the others are `added` to what is there, if that is not 0.
    """
    t, short = ("float", "f32") if dtype == "float32" else ("double", "f64")
    v, mask, numbers = (f"<{columns} x {each}>" for each in (t, "i1", "i64"))
    each, aligned = range(rows), f"align {int(short[1:]) // 8}"
    load, store = (f"@llvm.masked.{verb}.v{columns}{short}.p0" for verb in ("load", "store"))

    def all_of(x: str, of: str) -> str:
        full = f"<{columns} x {of}>"
        return f"""\
  {x}.one = insertelement {full} poison, {of} {x}, i64 0
  {x}.all = shufflevector {full} {x}.one, {full} poison, <{columns} x i32> zeroinitializer"""
    lanes = ", ".join(f"i64 {lane}" for lane in range(columns))
    return "\n".join([f"""\
define internal void @{name}(ptr %x, i64 %down, i64 %right, ptr %y, i64 %step, i64 %k, ptr %z, \
i64 %below, i64 %row, i64 %column, i64 %stop, i64 %added) noinline optsize nounwind {{
entry:
{all_of("%column", "i64")}
{all_of("%stop", "i64")}
  %inside = icmp slt {numbers} <{lanes}>, %stop.all
  %late = icmp sge {numbers} <{lanes}>, %column.all
  %both = and {mask} %inside, %late
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %x.at = phi ptr [ %x, %entry ], [ %x.next, %next ]
  %y.at = phi ptr [ %y, %entry ], [ %y.next, %next ]""",
        *(f"  %sum.{r} = phi {v} [ zeroinitializer, %entry ], [ %more.{r}, %next ]" for r in each),
        f"  %terms = call {v} {load}(ptr {aligned} %y.at, {mask} %inside, {v} zeroinitializer)",
        *(f"""\
  %down.{r} = mul i64 %down, {r}
  %x.{r}.at = getelementptr {t}, ptr %x.at, i64 %down.{r}
  %x.{r} = load {t}, ptr %x.{r}.at
{all_of(f"%x.{r}", t)}
  %more.{r} = call {v} @llvm.fmuladd.v{columns}{short}({v} %x.{r}.all, {v} %terms, {v} %sum.{r})"""
          for r in each), f"""\
  %x.next = getelementptr {t}, ptr %x.at, i64 %right
  %y.next = getelementptr {t}, ptr %y.at, i64 %step
  %i.next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %i.next, %k
  br i1 %done, label %end, label %next
end:
  %is.added = icmp ne i64 %added, 0
{all_of("%is.added", "i1")}
  %old = and {mask} %both, %is.added.all""",
        *(f"""\
  %below.{r} = mul i64 %below, {r}
  %z.{r} = getelementptr {t}, ptr %z, i64 %below.{r}
  %here.{r} = icmp sle i64 %row, {r}
{all_of(f"%here.{r}", "i1")}
  %new.{r} = and {mask} %both, %here.{r}.all
  %before.{r} = select i1 %is.added, ptr %z.{r}, ptr %y
  %old.{r} = call {v} {load}(ptr {aligned} %before.{r}, {mask} %old, {v} zeroinitializer)
  %total.{r} = fadd nsz {v} %old.{r}, %more.{r}
  call void {store}({v} %total.{r}, ptr {aligned} %z.{r}, {mask} %new.{r})""" for r in each),
        "  ret void", "}"])
