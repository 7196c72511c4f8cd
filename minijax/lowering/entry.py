"""Where Python enters a kernel, and what kernels call in pool.py, as LLVM text.

Stands on nothing. Chapter 26. In JAX: the calling convention of XLA's CPU executables.
"""

SYMBOL = "enter"

# What Python calls: a list of NumPy arrays comes in, the addresses of their elements go on. Both
# objects have a header, and then, in C's public layout, a list its length and the address of its
# items, an array the address of its elements. The loop is short: it is not to be vectorised.
ENTER = f"""
define i32 @{SYMBOL}(ptr noundef %list) minsize nounwind {{
entry:
  %size.at = getelementptr i8, ptr %list, i64 {object.__basicsize__}
  %size = load i64, ptr %size.at
  %items.at = getelementptr i8, ptr %list, i64 {object.__basicsize__ + 8}
  %items = load ptr, ptr %items.at
  %buffers = alloca ptr, i64 %size
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %one ]
  %more = icmp slt i64 %k, %size
  br i1 %more, label %one, label %run
one:
  %item.at = getelementptr ptr, ptr %items, i64 %k
  %item = load ptr, ptr %item.at
  %data.at = getelementptr i8, ptr %item, i64 {object.__basicsize__}
  %data = load ptr, ptr %data.at
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %k
  store ptr %data, ptr %buffer.at
  %k.next = add nuw nsw i64 %k, 1
  br label %next
run:
  %status = call i32 @kernel(ptr %buffers)
  ret i32 %status
}}
"""

# What pool.py provides.
DECLARATIONS = {"minijax_share": "declare void @minijax_share(ptr, ptr, i64)\n",
                "minijax_blas": "declare void @minijax_blas(i64)\n",
                "PyMem_RawMalloc": "declare ptr @PyMem_RawMalloc(i64)\n",
                "PyMem_RawFree": "declare void @PyMem_RawFree(ptr)\n"}
