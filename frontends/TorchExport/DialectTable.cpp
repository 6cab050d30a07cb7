//===- DialectTable.cpp - Operations by the ATen call they are ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/DialectTable.h"

#include "dialects/Aten/Aten.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"

using namespace accel;
using namespace accel::torchexport;
using llvm::StringRef;

namespace {

using Table = llvm::StringMap<llvm::SmallVector<DialectEntry, 1>>;

/// Splits at the commas outside of brackets.
llvm::SmallVector<StringRef> split(StringRef text) {
  llvm::SmallVector<StringRef> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (StringRef part = text.slice(begin, i).trim(); !part.empty())
        parts.push_back(part);
      begin = i + 1;
    } else if (text[i] == '[') {
      ++depth;
    } else if (text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

void add(Table &table, StringRef operation, StringRef schema) {
  if (schema.empty())
    return;
  auto [name, rest] = schema.split('(');
  rest = rest.take_front(rest.rfind(')'));
  table[name].push_back({operation.str(), split(rest)});
}

/// Asks an empty operation of each kind for its definition's schema.
Table readTable(mlir::MLIRContext *context) {
  Table table;
  for (mlir::RegisteredOperationName name :
       context->getRegisteredOperationsByDialect("aten")) {
    mlir::OperationState state(mlir::UnknownLoc::get(context), name);
    mlir::Operation *op = mlir::Operation::create(state);
    if (auto aten = llvm::dyn_cast<aten::AtenOpInterface>(op))
      add(table, name.getStringRef(), aten.getSchema());
    op->destroy();
  }
  return table;
}

} // namespace

llvm::ArrayRef<DialectEntry>
torchexport::dialectEntries(mlir::MLIRContext *context, StringRef name) {
  static const Table table = readTable(context);
  name.consume_back(".default");
  auto found = table.find(name);
  if (found == table.end())
    return {};
  return found->second;
}
