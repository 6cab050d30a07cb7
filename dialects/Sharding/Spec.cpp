//===- Spec.cpp - How values are sharded ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Spec.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace accel::sharding;

//===----------------------------------------------------------------------===//
// The attribute, but for its text
//===----------------------------------------------------------------------===//

LogicalResult SpecAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<ArrayAttr> dims, ArrayAttr partial,
                               BecauseAttr) {
  llvm::StringSet<> seen;
  auto check = [&](ArrayAttr axes, bool takesPieces) -> LogicalResult {
    for (auto [i, axis] : llvm::enumerate(axes)) {
      if (auto pieces = dyn_cast<IntegerAttr>(axis); pieces && takesPieces) {
        if (pieces.getInt() < 2)
          return emitError() << "a spec cuts a dimension in " << pieces.getInt()
                             << " pieces, expected at least 2";
        size_t next = i + 1;
        if (next < axes.size() && isa<UnitAttr>(axes[next])) {
          if (pieces.getInt() % 2)
            return emitError() << "a spec mirrors " << pieces.getInt()
                               << " pieces, expected an even number";
          ++next;
        }
        if (next >= axes.size() || !isa<StringAttr>(axes[next]))
          return emitError() << "the number of pieces " << pieces.getInt()
                             << " is not followed by the axis that shards "
                                "each of them";
        continue;
      }
      if (isa<UnitAttr>(axis) && i && isa<IntegerAttr>(axes[i - 1]))
        continue;
      auto name = dyn_cast<StringAttr>(axis);
      if (!name || name.empty())
        return emitError() << "an axis of a spec is " << axis
                           << ", expected a name";
      if (!seen.insert(name.getValue()).second)
        return emitError() << "the axis '" << name.getValue()
                           << "' is used twice in one spec";
    }
    return success();
  };
  for (ArrayAttr axes : dims)
    if (failed(check(axes, /*takesPieces=*/true)))
      return failure();
  return partial ? check(partial, /*takesPieces=*/false) : success();
}

StringRef accel::sharding::firstAxis(ArrayAttr axes) {
  return cast<StringAttr>(axes[0]).getValue();
}

std::string accel::sharding::axisNames(ArrayAttr axes) {
  return llvm::join(axes.getAsValueRange<StringAttr>(), " x ");
}

static SmallVector<StringRef> namesOf(ArrayAttr axes) {
  SmallVector<StringRef> names;
  if (axes)
    for (Attribute axis : axes)
      if (auto name = dyn_cast<StringAttr>(axis))
        names.push_back(name.getValue());
  return names;
}

SmallVector<ShardedBy, 1> accel::sharding::shardedBy(SpecAttr spec,
                                                     int64_t dim) {
  SmallVector<ShardedBy, 1> parts;
  ShardedBy part;
  for (Attribute axis : spec.getDims()[dim]) {
    if (auto number = dyn_cast<IntegerAttr>(axis)) {
      part.pieces = number.getInt();
    } else if (isa<UnitAttr>(axis)) {
      part.mirrored = true;
    } else {
      part.axis = cast<StringAttr>(axis).getValue();
      parts.push_back(part);
      part = {};
    }
  }
  return parts;
}

bool accel::sharding::isShardedBy(SpecAttr spec, int64_t dim, StringRef axis) {
  return spec && dim < static_cast<int64_t>(spec.getRank()) &&
         llvm::any_of(
             shardedBy(spec, dim),
             [&](const ShardedBy &by) { return by.axis == axis; });
}

ArrayAttr accel::sharding::dimOf(MLIRContext *context,
                                 ArrayRef<ShardedBy> parts) {
  Builder b(context);
  SmallVector<Attribute> list;
  for (const ShardedBy &part : parts) {
    if (part.pieces != 1)
      list.push_back(b.getI64IntegerAttr(part.pieces));
    if (part.mirrored)
      list.push_back(b.getUnitAttr());
    list.push_back(b.getStringAttr(part.axis));
  }
  return b.getArrayAttr(list);
}

SmallVector<StringRef> SpecAttr::axesOf(int64_t dim) const {
  return namesOf(getDims()[dim]);
}

SmallVector<StringRef> SpecAttr::partialAxes() const {
  return namesOf(getPartial());
}

bool SpecAttr::isReplicated() const {
  return !getPartial() &&
         llvm::all_of(getDims(), [](ArrayAttr axes) { return axes.empty(); });
}

SpecAttr SpecAttr::withoutReason() const {
  return get(getContext(), getDims(), getPartial(), BecauseAttr());
}

//===----------------------------------------------------------------------===//
// A spec on a value
//===----------------------------------------------------------------------===//

static int64_t shardsOf(SpecAttr spec, int64_t dim, MeshOp mesh) {
  int64_t shards = 1;
  for (StringRef axis : spec.axesOf(dim))
    shards *= mesh.axisSize(axis);
  return shards;
}

LogicalResult
accel::sharding::verifySpec(SpecAttr spec, Type type, MeshOp mesh,
                            function_ref<InFlightDiagnostic()> where) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return where() << "has a spec but is no tensor: " << type;
  if (tensor.getRank() != spec.getRank())
    return where() << "has a spec of " << spec.getRank()
                   << " dimensions, but its type is " << type;
  llvm::StringSet<> known;
  std::string list;
  if (mesh)
    for (auto axis : mesh.getAxes().getAsRange<AxisAttr>()) {
      known.insert(axis.getName());
      list += (list.empty() ? "" : ", ") + axis.getName().str();
    }
  auto check = [&](ArrayRef<StringRef> axes) -> LogicalResult {
    for (StringRef axis : axes) {
      if (!mesh)
        return where() << "is sharded over '" << axis
                       << "', but the module has no mesh";
      if (!known.contains(axis))
        return where() << "is sharded over '" << axis
                       << "', which is no axis of the mesh (" << list << ")";
    }
    return success();
  };
  for (int64_t dim = 0; dim < spec.getRank(); ++dim) {
    const SmallVector<StringRef> axes = spec.axesOf(dim);
    if (failed(check(axes)))
      return failure();
    if (axes.empty())
      continue;
    int64_t pieces = 1;
    for (const ShardedBy &part : shardedBy(spec, dim))
      pieces *= part.pieces;
    const int64_t shards = shardsOf(spec, dim, mesh);
    if (pieces > 1 && tensor.getDimSize(dim) % (pieces * shards) != 0)
      return where() << "has dimension " << dim << " of size "
                     << tensor.getDimSize(dim) << ", which " << pieces
                     << " pieces in " << shards << " shards do not divide";
    if (tensor.getDimSize(dim) % shards != 0)
      return where() << "has dimension " << dim << " of size "
                     << tensor.getDimSize(dim) << ", which " << shards
                     << " shards do not divide";
  }
  return check(spec.partialAxes());
}

RankedTensorType
accel::sharding::localType(SpecAttr spec, RankedTensorType type, MeshOp mesh) {
  if (!spec)
    return type;
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t dim = 0; dim < spec.getRank(); ++dim)
    if (!spec.axesOf(dim).empty())
      shape[dim] /= shardsOf(spec, dim, mesh);
  return type.clone(shape);
}

//===----------------------------------------------------------------------===//
// Attributes of operations, arguments and results
//===----------------------------------------------------------------------===//

static MeshOp meshAround(Operation *op) {
  auto module = dyn_cast<mlir::ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<mlir::ModuleOp>();
  return module ? findOnly<MeshOp>(module) : MeshOp();
}

/// A list with a spec for each of `types`; `what` is what they are of.
static LogicalResult verifySpecs(Operation *op, NamedAttribute attribute,
                                 TypeRange types, StringRef what) {
  const StringRef name = attribute.getName().getValue();
  auto specs = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!specs ||
      llvm::any_of(specs, [](Attribute spec) { return !isa<SpecAttr>(spec); }))
    return op->emitOpError()
           << "has '" << name << "' = " << attribute.getValue()
           << ", expected a list of #sharding.spec";
  if (specs.size() != types.size())
    return op->emitOpError()
           << "has " << types.size() << " " << what << "s, but '" << name
           << "' lists " << specs.size() << " specs";
  const MeshOp mesh = meshAround(op);
  for (auto [i, spec] : llvm::enumerate(specs.getAsRange<SpecAttr>()))
    if (failed(verifySpec(spec, types[i], mesh, [&, i = i] {
          return op->emitOpError() << what << " " << i << " ";
        })))
      return failure();
  return success();
}

LogicalResult ShardingDialect::verifyOperationAttribute(Operation *op,
                                                        NamedAttribute attr) {
  if (attr.getName() == specsAttr)
    return verifySpecs(op, attr, op->getResultTypes(), "result");
  if (attr.getName() != argSpecsAttr)
    return success();
  auto graph = dyn_cast<GraphOp>(op);
  if (!graph)
    return op->emitOpError()
           << "has '" << argSpecsAttr << "', which belongs to a sharding.graph";
  return verifySpecs(op, attr, graph.getBody().getArgumentTypes(), "argument");
}

static LogicalResult verifyFunctionSpec(Operation *op, NamedAttribute attr,
                                        ArrayRef<Type> types, unsigned index,
                                        StringRef what) {
  if (attr.getName() != specArgAttr)
    return success();
  auto where = [&] { return op->emitOpError() << what << " " << index << " "; };
  auto spec = dyn_cast<SpecAttr>(attr.getValue());
  if (!spec)
    return where() << "has '" << specArgAttr << "' = " << attr.getValue()
                   << ", expected a #sharding.spec";
  return verifySpec(spec, types[index], meshAround(op), where);
}

LogicalResult ShardingDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                        unsigned index,
                                                        NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  return verifyFunctionSpec(op, attr, function.getArgumentTypes(), index,
                            "argument");
}

LogicalResult ShardingDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  return verifyFunctionSpec(op, attr, function.getResultTypes(), index,
                            "result");
}
