"""Products of matrices: a BLAS found in this process, called by kernels from several threads.

Stands on library.py; the threads are those of pool.py. Chapter 24.
In JAX: the dot emitters of XLA's CPU backend, on Eigen and oneDNN.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .library import External, blas, blas_symbols

# BLAS is column-major: a row-major C = A B is its C' = B' A', so the operands change places. The
# Fortran interface passes everything by address. Work is m n k: little is done at once, much in
# blocks of rows or of columns of C, whichever are more; the blocks depend on the sizes alone, so
# the result does not depend on the threads.
GEMM = """
declare void @{symbol}(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
%product = type {{ i64, i64, i64, i64, i64, ptr, i64, ptr, i64, ptr, i64, i64, i64 }}
define internal void @{name}(i64 %transpose_a, i64 %transpose_b, i64 %m, i64 %n, i64 %k,
    ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc) noinline nounwind {{
  %frame = alloca %product
  %mn = mul i64 %m, %n
  %work = mul i64 %mn, %k
  %little = icmp ule i64 %work, {alone}
  br i1 %little, label %directly, label %limited
directly:
  call void @{name}.block(i64 %transpose_a, i64 %transpose_b, i64 %m, i64 %n, i64 %k,
    ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc)
  ret void
limited:
  call void @minijax_blas(i64 1)
  %by.rows = icmp uge i64 %m, %n
  %longest = select i1 %by.rows, i64 %m, i64 %n
  %many = udiv i64 %longest, {least}
  %some = call i64 @llvm.umin.i64(i64 %many, i64 {blocks})
  %enough = icmp uge i64 %work, {shared}
  %wanted = select i1 %enough, i64 %some, i64 1
  %parts = call i64 @llvm.umax.i64(i64 %wanted, i64 1)
  %more = add i64 %longest, %parts
  %up = sub i64 %more, 1
  %each = udiv i64 %up, %parts
  %by = zext i1 %by.rows to i64
{stores}
  call void @minijax_share(ptr @{name}.part, ptr %frame, i64 %parts)
  call void @minijax_blas(i64 -1)
  ret void
}}

define internal void @{name}.part(ptr %frame, i64 %k.block) nounwind {{
{loads}
  %start = mul i64 %k.block, %each
  %by.rows = icmp ne i64 %by, 0
  %size = select i1 %by.rows, i64 %m, i64 %n
  %full = add i64 %start, %each
  %stop = call i64 @llvm.umin.i64(i64 %full, i64 %size)
  %none = icmp uge i64 %start, %stop
  br i1 %none, label %end, label %some
some:
  %count = sub i64 %stop, %start
  %m.here = select i1 %by.rows, i64 %count, i64 %m
  %n.here = select i1 %by.rows, i64 %n, i64 %count
  %a.turned = icmp ne i64 %transpose_a, 0
  %a.step = select i1 %a.turned, i64 1, i64 %lda
  %a.part = mul i64 %start, %a.step
  %a.by = select i1 %by.rows, i64 %a.part, i64 0
  %a.here = getelementptr {real}, ptr %a, i64 %a.by
  %b.turned = icmp ne i64 %transpose_b, 0
  %b.step = select i1 %b.turned, i64 %ldb, i64 1
  %b.part = mul i64 %start, %b.step
  %b.by = select i1 %by.rows, i64 0, i64 %b.part
  %b.here = getelementptr {real}, ptr %b, i64 %b.by
  %c.step = select i1 %by.rows, i64 %ldc, i64 1
  %c.by = mul i64 %start, %c.step
  %c.here = getelementptr {real}, ptr %c, i64 %c.by
  call void @{name}.block(i64 %transpose_a, i64 %transpose_b, i64 %m.here, i64 %n.here, i64 %k,
    ptr %a.here, i64 %lda, ptr %b.here, i64 %ldb, ptr %c.here, i64 %ldc)
  br label %end
end:
  ret void
}}

define internal void @{name}.block(i64 %transpose_a, i64 %transpose_b, i64 %m, i64 %n, i64 %k,
    ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc) noinline nounwind {{
  %letters = alloca [2 x i8]
  %numbers = alloca [6 x {integer}]
  %scales = alloca [2 x {real}]
{letters}
{numbers}
  %one = getelementptr {real}, ptr %scales, i64 0
  store {real} 1.0, ptr %one
  %zero = getelementptr {real}, ptr %scales, i64 1
  store {real} 0.0, ptr %zero
  call void @{symbol}(ptr %letter.b, ptr %letter.a, ptr %number.n, ptr %number.m, ptr %number.k,
      ptr %one, ptr %b, ptr %number.ldb, ptr %a, ptr %number.lda,
      ptr %zero, ptr %c, ptr %number.ldc)
  ret void
}}"""

FIELDS = ("i64 transpose_a", "i64 transpose_b", "i64 m", "i64 n", "i64 k", "ptr a", "i64 lda",
          "ptr b", "i64 ldb", "ptr c", "i64 ldc", "i64 each", "i64 by")

ALONE = 64**3      # OpenBLAS does products of so few terms in one thread anyway
SHARED = 1 << 20   # about 20 µs: twice what waking a thread takes
LEAST = 64         # rows or columns in a block; fewer waste what BLAS rearranges for each call
BLOCKS = 4         # a thread that the system takes away for a while leaves the rest to others

# "T" (84) or "N" (78).
LETTER = """\
  %transposed.{x} = icmp ne i64 %transpose_{x}, 0
  %code.{x} = select i1 %transposed.{x}, i8 84, i8 78
  %letter.{x} = getelementptr i8, ptr %letters, i64 {position}
  store i8 %code.{x}, ptr %letter.{x}"""

# BLAS refuses a stride of zero, which an empty matrix may have.
NUMBER = """\
  %large.{x} = call i64 @llvm.smax.i64(i64 %{x}, i64 {least})
  %short.{x} = {narrow}
  %number.{x} = getelementptr {integer}, ptr %numbers, i64 {position}
  store {integer} %short.{x}, ptr %number.{x}"""


def _definition(name: str, real: str) -> str:
    """The LLVM text of a row-major product C = op(A) op(B) on top of BLAS."""
    routine = blas(name)
    integer = routine.integer
    letters = [LETTER.format(x=x, position=p) for p, x in enumerate("ab")]
    numbers = []
    for position, x in enumerate(("m", "n", "k", "lda", "ldb", "ldc")):
        large = f"%large.{x}"
        narrow = f"trunc i64 {large} to i32" if integer == "i32" else f"add i64 {large}, 0"
        least = 1 if x.startswith("ld") else 0
        numbers.append(NUMBER.format(x=x, position=position, integer=integer, narrow=narrow,
                                     least=least))
    stores, loads = _frame()
    return GEMM.format(name=name, symbol=routine.symbol(name), integer=integer, real=real,
                       letters="\n".join(letters), numbers="\n".join(numbers), stores=stores,
                       loads=loads, alone=ALONE, shared=SHARED, least=LEAST, blocks=BLOCKS).lstrip()


def _frame() -> tuple[str, str]:
    """The lines that write and that read what a block needs to know."""
    stores, loads = [], []
    for position, field in enumerate(FIELDS):
        kind, x = field.split()
        place = f"getelementptr %product, ptr %frame, i64 0, i32 {position}"
        stores += [f"  %frame.{x} = {place}", f"  store {kind} %{x}, ptr %frame.{x}"]
        loads += [f"  %frame.{x} = {place}", f"  %{x} = load {kind}, ptr %frame.{x}"]
    return "\n".join(stores), "\n".join(loads)


def _meaning(transpose_a: int, transpose_b: int, m: int, n: int, k: int, a: np.ndarray,
             lda: int, b: np.ndarray, ldb: int, c: np.ndarray, ldc: int) -> None:
    """C = op(A) op(B): matrices stored row by row, `ld` elements from one row to the next."""
    left = _matrix(a, k, m, lda).T if transpose_a else _matrix(a, m, k, lda)
    right = _matrix(b, n, k, ldb).T if transpose_b else _matrix(b, k, n, ldb)
    np.matmul(left, right, out=_matrix(c, m, n, ldc))


def _matrix(start: np.ndarray, rows: int, columns: int, stride: int) -> np.ndarray:
    step = start.itemsize
    return np.lib.stride_tricks.as_strided(start, (rows, columns), (stride * step, step))


PRODUCTS: dict[str, External] = {
    name: External(name, _meaning, partial(_definition, name, real), partial(blas_symbols, name),
                   shares=True)
    for name, real in (("sgemm", "float"), ("dgemm", "double"))}
