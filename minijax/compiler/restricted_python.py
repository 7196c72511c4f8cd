"""Restricted Python as LLVM assembly, for the functions of the runtime: those that kernels call.

Builds on Python's parser. pool.py and interrupts.py have the functions. Chapter 26.
In PyPy: RPython, in which its runtime is written; JAX has its own in C++.
"""

import ast
from itertools import count

OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and",
             ast.Eq: "icmp eq", ast.NotEq: "icmp ne", ast.Lt: "icmp slt", ast.Gt: "icmp sgt",
             ast.GtE: "icmp sge"}


def translated(source: str) -> str:
    """The functions of a source, and declarations of what else they call.

    All values are integers of 64 bits, addresses too; `int32(x)` is the lower half of one, which is
    all that a function of C may have set. `pool.x` is a variable outside of the source, each access
    to which is atomic, and `memory[x]` the word at an address. `at(x)` is the address of a
    variable, `words(n)` that of n words on the stack; `fetch_add(x, n)` changes a variable, and is
    its old value.

    >>> print(translated("def twice(x): return x + x"), end="")
    define i64 @twice(i64 %x.first) nounwind {
      %x = alloca i64
      store i64 %x.first, ptr %x
      %v2 = load i64, ptr %x
      %v3 = load i64, ptr %x
      %v4 = add i64 %v2, %v3
      ret i64 %v4
    return.1.end:
      ret i64 0
    }
    """
    functions = [_Function(x) for x in ast.parse(source).body if isinstance(x, ast.FunctionDef)]
    texts = [f.text() for f in functions]
    known = {f.definition.name for f in functions}
    called = {name: n for f in functions for name, n in f.called.items() if name not in known}
    return "\n".join([*(f"declare i64 @{name}({', '.join(['i64'] * n)})"
                        for name, n in called.items()), *texts]) + "\n"


class _Function:
    """Translates one function. `lines` is its body so far."""

    def __init__(self, definition: ast.FunctionDef) -> None:
        self.definition = definition
        self.called: dict[str, int] = {}  # functions, with their numbers of arguments
        self.locals: dict[str, None] = {}
        self.lines: list[str] = []
        self.numbers = count(1)

    def text(self) -> str:
        names = [x.arg for x in self.definition.args.args]
        for name in names:
            self.assign(ast.Name(name), f"%{name}.first")
        self.body(self.definition.body)
        signature = ", ".join(f"i64 %{name}.first" for name in names)
        variables = [f"  %{name} = alloca i64" for name in self.locals]
        return "\n".join([f"define i64 @{self.definition.name}({signature}) nounwind {{",
                          *variables, *self.lines, "  ret i64 0", "}"])

    def emit(self, *lines: str) -> None:
        """Append instructions, or the beginning of a block."""
        self.lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    def define(self, expression: str) -> str:
        """The name of the value of an expression."""
        name = f"%v{next(self.numbers)}"
        self.emit(f"{name} = {expression}")
        return name

    def place(self, variable: ast.expr) -> tuple[str, str, str]:
        """The words before the type of a variable, its address, and what follows."""
        match variable:
            case ast.Name(name):
                return "", f"ptr %{name}", ""
            case ast.Subscript(_, address):
                return "", f"ptr {self.define(f'inttoptr i64 {self.value(address)} to ptr')}", ""
        return "atomic ", f"ptr @{ast.unparse(variable)}", " seq_cst, align 8"

    # -- statements ----------------------------------------------------------------------------

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, x: ast.stmt) -> None:
        label = f"{type(x).__name__.lower()}.{next(self.numbers)}"
        match x:
            case ast.Assign([target], value):
                self.assign(target, self.value(value))
            case ast.AugAssign(target, operator, value):
                self.assign(target, self.value(ast.BinOp(target, operator, value)))
            case ast.If(test, then, orelse):
                self.branch(test, then, orelse, label, f"{label}.end")
            case ast.While(test, inner):
                self.emit(f"br label %{label}.again", f"{label}.again:")
                self.branch(test, inner, [], label, f"{label}.again")
            case ast.Return(value):
                self.emit(f"ret i64 {self.value(value) if value else 0}", f"{label}.end:")
            case ast.Expr(value):
                self.value(value)
            case _:
                raise SyntaxError(f"restricted Python has no {ast.unparse(x)}")

    def assign(self, target: ast.expr, value: str) -> None:
        if isinstance(target, ast.Name):
            self.locals[target.id] = None
        atomic, place, order = self.place(target)
        self.emit(f"store {atomic}i64 {value}, {place}{order}")

    def branch(self, test: ast.expr, then: list[ast.stmt], orelse: list[ast.stmt], label: str,
               following: str) -> None:
        """Two bodies, the first of which goes on at the block `following`."""
        self.emit(f"br i1 {self.test(test)}, label %{label}.then, label %{label}.else",
                  f"{label}.then:")
        self.body(then)
        self.emit(f"br label %{following}", f"{label}.else:")
        self.body(orelse)
        self.emit(f"br label %{label}.end", f"{label}.end:")

    # -- expressions ---------------------------------------------------------------------------

    def test(self, x: ast.expr) -> str:
        """Whether a comparison holds, or a value is not zero."""
        if not isinstance(x, ast.Compare):
            x = ast.Compare(x, [ast.NotEq()], [ast.Constant(0)])
        return self.operation(x.ops[0], x.left, x.comparators[0])

    def operation(self, operator: ast.AST, *operands: ast.expr) -> str:
        texts = ", ".join(map(self.value, operands))
        return self.define(f"{OPERATORS[type(operator)]} i64 {texts}")

    def value(self, x: ast.expr) -> str:
        """The name of the value of an expression."""
        match x:
            case ast.Constant() | ast.UnaryOp(ast.USub()):
                return ast.unparse(x)
            case ast.BinOp(left, operator, right):
                return self.operation(operator, left, right)
            case ast.Call(ast.Name("at"), [variable]):
                return self.define(f"ptrtoint {self.place(variable)[1]} to i64")
            case ast.Call(ast.Name("words"), [n]):
                return self.define(f"ptrtoint ptr {self.define(f'alloca i64, i64 {self.value(n)}')}"
                                   " to i64")
            case ast.Call(ast.Name("int32"), [whole]):
                half = self.define(f"trunc i64 {self.value(whole)} to i32")
                return self.define(f"sext i32 {half} to i64")
            case ast.Call(ast.Name("fetch_add"), [variable, n]):
                _, place, order = self.place(variable)
                return self.define(f"atomicrmw add {place}, i64 {self.value(n)}{order}")
            case ast.Call(function, args):
                operands = ", ".join(f"i64 {self.value(each)}" for each in args)
                return self.define(f"call i64 {self.callee(function, len(args))}({operands})")
        atomic, place, order = self.place(x)
        return self.define(f"load {atomic}i64, {place}{order}")

    def callee(self, function: ast.expr, count: int) -> str:
        """The function of a name, or what a variable points to."""
        name = ast.unparse(function)
        if isinstance(function, ast.Name) and name not in self.locals:
            self.called[name] = count
            return f"@{name}"
        return self.define(f"inttoptr i64 {self.value(function)} to ptr")
