//===- ImportTpPlan.cpp - Parameters under tensor parallelism ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Spec.h"
#include "passes/Mesh/TpPlans.h"
#include "passes/Passes.h"
#include "runtime/plan/Mesh.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace accel {
#define GEN_PASS_DEF_IMPORTTPPLANPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using namespace accel::mesh;

namespace {

/// One expert's parameters are on one rank of it.
constexpr const char *expertAxis = plan::expertAxis;

/// The dimension that `style` shards of a parameter; nullopt where none is. The
/// weights of Conv1D are [in, out], of all others [.., out, in].
std::optional<int64_t> shardedDim(TpStyle style, int64_t rank,
                                  bool inputFirst) {
  switch (style) {
  case TpStyle::Colwise:
  case TpStyle::ColwiseGatherOutput:
  case TpStyle::PackedColwise:
    return rank == 1 ? 0 : inputFirst ? rank - 1 : rank - 2;
  case TpStyle::Rowwise:
  case TpStyle::RowwiseSplitInput:
    // A bias is added once, behind the sum.
    if (rank == 1)
      return std::nullopt;
    return inputFirst ? rank - 2 : rank - 1;
  case TpStyle::GroupedGemm:
  case TpStyle::EmbeddingRowwise:
    return 0;
  case TpStyle::ReplicatedWithGradAllreduce:
  case TpStyle::MoeTpExperts:
  case TpStyle::EpDispatchExperts:
    return std::nullopt;
  }
  llvm_unreachable("all styles are listed");
}

/// What lies along the dimension that a style shards.
StringRef counted(TpStyle style) {
  switch (style) {
  case TpStyle::GroupedGemm:
    return "experts";
  case TpStyle::Rowwise:
  case TpStyle::RowwiseSplitInput:
    return "input features";
  default:
    return "output features";
  }
}

std::string divisors(int64_t size) {
  std::string list;
  for (int64_t n = 2; n <= 64; ++n)
    if (size % n == 0)
      list += (list.empty() ? "" : ", ") + std::to_string(n);
  return list.empty() ? "1" : list;
}

/// A parameter of an adapter, or of a layer that has one.
struct AdapterName {
  std::string layer; // the module that the plan names
  enum Part { Base, LoraA, LoraB, Other } part = Base;
};

AdapterName adapterName(StringRef owner) {
  AdapterName name;
  for (auto [infix, part] : {std::pair(".lora_A.", AdapterName::LoraA),
                             {".lora_B.", AdapterName::LoraB},
                             {".lora_", AdapterName::Other}})
    if (size_t at = owner.find(infix); at != StringRef::npos) {
      name.part = part;
      owner = owner.take_front(at);
      break;
    }
  owner.consume_back(".base_layer");
  name.layer = owner.str();
  return name;
}

/// Whether an adapter's matrix is sharded as its layer is: the one that makes
/// what a column-wise layer makes, and the one that reads what a row-wise layer
/// reads (peft/tuners/lora/model.py, add_lora_tp_hooks_dtensor, 0.21).
bool isAdapterSharded(AdapterName::Part part, TpStyle style) {
  switch (part) {
  case AdapterName::Base:
    return true;
  case AdapterName::LoraA:
    return style == TpStyle::Rowwise;
  case AdapterName::LoraB:
    return style == TpStyle::Colwise;
  case AdapterName::Other:
    return false;
  }
  llvm_unreachable("all parts are listed");
}

struct ImportTpPlanPass : accel::impl::ImportTpPlanPassBase<ImportTpPlanPass> {
  using Base::Base;

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    if (!mesh || (mesh.axisSize(axis) == 1 && mesh.axisSize(expertAxis) == 1))
      return;
    told.clear();
    gathered.clear();
    llvm::StringMap<StringRef> classes;
    ModelTpPlan model;
    for (auto node : module.getOps<sharding::ModuleOp>()) {
      classes[node.getFqn()] = node.getClassName();
      model.addModule(node.getFqn(), node.getClassName());
    }
    const TpPlan *plan = model.get();
    if (!plan) {
      mesh.emitRemark("no tensor-parallel plan is known for this model: every "
                      "rank of '")
          << (mesh.axisSize(axis) == 1 ? StringRef(expertAxis)
                                       : StringRef(axis))
          << "' has whole parameters, unless they have a 'spec'";
      return;
    }
    if (asTransformers && !plan->published) {
      emitError(mesh.getLoc(), "transformers has no tensor-parallel plan for ")
          << plan->baseClass << ", so that nothing splits the model";
      return signalPassFailure();
    }
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    const bool dispatched = graph && graph->hasAttr(sharding::expertsAttr);
    for (auto param : module.getOps<sharding::ParamOp>())
      if ((!param.getSpecAttr() || (dispatched && isShared(param))) &&
          failed(decide(param, model, classes, mesh)))
        return signalPassFailure();
    if (asTransformers)
      decideOperations(module);
  }

  /// What transformers' styles compute whole on every rank: the output of a
  /// `colwise_gather_output` layer, and the gradient of a table, for which
  /// DTensor has no sharded form.
  void decideOperations(mlir::ModuleOp module) {
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!graph)
      return;
    for (auto call : graph.getBody().getOps<sharding::CallOp>())
      for (const llvm::StringRef suffix : {"", ".joint"}) {
        auto function = module.lookupSymbol<func::FuncOp>(
            (call.getCallee() + suffix).str());
        for (unsigned i = 0; function && i < function.getNumArguments(); ++i)
          if (auto name = function.getArgAttrOfType<StringAttr>(
                  i, sharding::paramArgAttr);
              name && gathered.contains(call.bindParam(name.getValue())))
            gatherReaders(function.getArgument(i));
        if (function)
          for (auto table : function.getOps<aten::EmbeddingDenseBackwardOp>())
            decideWhole(table, TpStyle::EmbeddingRowwise);
      }
  }

  /// Whoever reads a product of `value`, itself or a view of it, works on the
  /// whole: the product is made in parts and gathered behind the matmul.
  void gatherReaders(Value value) {
    for (Operation *reader : value.getUsers()) {
      auto aten = dyn_cast<aten::AtenOpInterface>(reader);
      if (!aten)
        continue;
      if (aten.getCategory() == aten::Category::View)
        gatherReaders(reader->getResult(0));
      if (aten.getCategory() == aten::Category::Matmul)
        for (Operation *user : reader->getResult(0).getUsers())
          if (isa<aten::AtenOpInterface>(user))
            decideWhole(user, TpStyle::ColwiseGatherOutput);
    }
  }

  void decideWhole(Operation *op, TpStyle style) {
    Builder b(&getContext());
    SmallVector<Attribute> specs;
    for (Type type : op->getResultTypes())
      specs.push_back(sharding::SpecAttr::get(
          &getContext(),
          SmallVector<ArrayAttr>(cast<RankedTensorType>(type).getRank(),
                                 b.getArrayAttr({})),
          ArrayAttr(),
          sharding::BecauseAttr::get(&getContext(),
                                     stringifyTpStyle(style).str())));
    op->setAttr(sharding::specsAttr, b.getArrayAttr(specs));
  }

  /// Experts that ranks share already (decide-experts): each of them can be
  /// split like any other layer.
  static bool isShared(sharding::ParamOp param) {
    return sharding::isShardedBy(param.getSpecAttr(), 0, expertAxis);
  }

  LogicalResult decide(sharding::ParamOp param, const ModelTpPlan &model,
                       const llvm::StringMap<StringRef> &classes,
                       sharding::MeshOp mesh) {
    const TpPlan &plan = *model.get();
    // A plan names modules, or parameters that are not in a linear layer.
    StringRef owner = param.getFqn().rsplit('.').first;
    const AdapterName layer = adapterName(owner);
    const StringRef derived = "derived plan of ";
    StringRef over = expertAxis, from = "base_model_ep_plan of ";
    const sharding::SpecAttr shared = param.getSpecAttr();
    if (sharding::isShardedBy(shared, 0, axis))
      return success(); // the ranks of both axes have whole experts
    const TpEntry *entry = mesh.axisSize(over) == 1 || shared
                               ? nullptr
                               : model.find(plan.experts, param.getFqn());
    if (!entry) {
      over = axis;
      from = "base_model_tp_plan of ";
      entry = model.find(plan.entries, param.getFqn());
      if (!entry)
        entry = model.find(plan.entries, layer.layer);
      if (!entry && !asTransformers) {
        from = derived;
        entry = model.find(plan.besides, param.getFqn());
        if (!entry)
          entry = model.find(plan.besides, layer.layer);
      }
    }
    if (!entry || mesh.axisSize(over) == 1 ||
        !isAdapterSharded(layer.part, entry->style))
      return success();
    RankedTensorType type = param.getTensorType();
    const StringRef style = stringifyTpStyle(entry->style);
    const bool packed = entry->style == TpStyle::PackedColwise;
    if (packed && !entry->layers) {
      if (told.insert(entry->pattern).second)
        param.emitRemark("'")
            << entry->pattern << "' holds layers of different sizes side by "
            << "side (" << style << "): every rank has it whole";
      return success();
    }
    std::optional<int64_t> dim = shardedDim(entry->style, type.getRank(),
                                            classes.lookup(owner) == "Conv1D");
    if (!dim)
      return success();
    const int64_t layers = packed ? entry->layers : 1;
    if (type.getDimSize(*dim) % layers != 0)
      return emitError(param.getLoc(), "'")
             << param.getFqn() << "' has " << type.getDimSize(*dim)
             << " output features, which are no " << layers
             << " layers of one size (" << style << ")";
    const int64_t size = type.getDimSize(*dim) / layers,
                  ranks = mesh.axisSize(over);
    if (size % ranks != 0) {
      // A vocabulary has any size: it can be whole.
      if (entry->style == TpStyle::ColwiseGatherOutput ||
          entry->style == TpStyle::EmbeddingRowwise) {
        param.emitRemark("'") << param.getFqn() << "' has " << size << " rows, "
                              << "which " << ranks << " ranks of '" << over
                              << "' do not divide: every rank has it whole";
        return success();
      }
      return emitError(param.getLoc(), "'")
             << param.getFqn() << "' has "
             << (packed ? std::to_string(layers) + " layers of " : "") << size
             << " " << counted(entry->style) << ", which " << ranks
             << " ranks of '" << over << "' do not divide (" << style << "); "
             << divisors(size) << " would fit";
    }
    noteGathered(param, model);
    Builder b(&getContext());
    SmallVector<ArrayAttr> dims(type.getRank(), b.getArrayAttr({}));
    std::string why =
        ((plan.published ? from : derived) + plan.baseClass + ": " + style)
            .str();
    if (shared) {
      dims[0] = sharding::dimOf(&getContext(), sharding::shardedBy(shared, 0));
      why = shared.getBecause().getWhy().str() + ", " + why;
    }
    dims[*dim] = sharding::dimOf(&getContext(), {{over, layers}});
    param.setSpecAttr(sharding::SpecAttr::get(
        &getContext(), dims, ArrayAttr(),
        sharding::BecauseAttr::get(&getContext(), why)));
    return success();
  }

  /// A tied head's parameter has the name of the table too.
  void noteGathered(sharding::ParamOp param, const ModelTpPlan &model) {
    SmallVector<StringRef> names = {param.getFqn()};
    if (ArrayAttr aliases = param.getAliasesAttr())
      llvm::append_range(names, aliases.getAsValueRange<StringAttr>());
    auto isGathered = [&](StringRef name) {
      const TpEntry *entry = model.find(
          model.get()->entries, adapterName(name.rsplit('.').first).layer);
      return entry && entry->style == TpStyle::ColwiseGatherOutput;
    };
    if (llvm::any_of(names, isGathered))
      gathered.insert_range(names);
  }

  llvm::StringSet<> gathered; // parameters whose layer's output is gathered
  llvm::StringSet<> told;     // patterns of which a remark was made
};

} // namespace
