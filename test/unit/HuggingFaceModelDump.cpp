//===- HuggingFaceModelDump.cpp - The model phase as JSON -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// hf-model-dump CONFIG MICRO_BATCH SEQUENCE [--mlir] [--input=NAME]...
// [--target=N]: the functions and the graph that the frontend builds, as JSON
// that test/parity/hf_numerics.py runs with PyTorch, or as MLIR; with optional
// inputs, and labels of another length.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Schema.h"
#include "dialects/Sharding/Sharding.h"
#include "frontends/HuggingFace/BuildModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/JSON.h"

using namespace accel;
using namespace mlir;
namespace json = llvm::json;

namespace {

/// Numbers the values of one function.
class Numbering {
public:
  int64_t operator()(Value value) {
    return ids.try_emplace(value, int64_t(ids.size())).first->second;
  }
  json::Array operator()(ValueRange values) {
    json::Array result;
    for (Value value : values)
      result.push_back((*this)(value));
    return result;
  }

private:
  llvm::DenseMap<Value, int64_t> ids;
};

json::Value constant(Attribute attribute) {
  if (auto flag = dyn_cast<BoolAttr>(attribute))
    return flag.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getInt();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.getValue();
  if (auto type = dyn_cast<TypeAttr>(attribute)) {
    std::string text;
    llvm::raw_string_ostream(text) << type.getValue();
    return json::Object{{"dtype", text}};
  }
  json::Array list;
  if (auto integers = dyn_cast<DenseI64ArrayAttr>(attribute))
    for (int64_t value : integers.asArrayRef())
      list.push_back(value);
  else
    for (Attribute element : cast<ArrayAttr>(attribute))
      list.push_back(constant(element));
  return list;
}

json::Object operation(Operation &op, Numbering &number) {
  json::Object result{{"results", number(op.getResults())}};
  json::Array args;
  // These have no call of their own until kernels are chosen.
  if (isa<aten::TypeAsOp, aten::RmsNormOp, aten::LayerNormOp,
          aten::ScaledDotProductAttentionOp>(op)) {
    result["op"] = op.getName().getStringRef();
    for (Value operand : op.getOperands())
      args.push_back(json::Object{{"tensor", number(operand)}});
    if (auto norm = dyn_cast<aten::RmsNormOp>(op)) {
      args.push_back(norm.getEps().convertToDouble());
      args.push_back(norm.getWide());
      args.push_back(norm.getShifted());
    }
    if (auto norm = dyn_cast<aten::LayerNormOp>(op))
      args.push_back(norm.getEps().convertToDouble());
    if (auto attention = dyn_cast<aten::ScaledDotProductAttentionOp>(op)) {
      args.push_back(attention.getIsCausal());
      args.push_back(attention.getScale().convertToDouble());
      args.push_back(attention.getWindow());
      args.push_back(attention.getSoftcap().convertToDouble());
    }
  } else {
    auto call = aten::buildCall(&op);
    if (failed(call))
      std::exit(3);
    result["op"] = call->name;
    for (const aten::CallArg &arg : call->args)
      switch (arg.kind) {
      case aten::CallArg::Kind::None:
        args.push_back(nullptr);
        break;
      case aten::CallArg::Kind::Tensor:
        args.push_back(json::Object{{"tensor", number(arg.tensors.front())}});
        break;
      case aten::CallArg::Kind::Tensors:
        args.push_back(
            json::Object{{"tensors", number(ValueRange(arg.tensors))}});
        break;
      case aten::CallArg::Kind::Constant:
        args.push_back(constant(arg.constant));
        break;
      }
  }
  result["args"] = std::move(args);
  return result;
}

json::Object function(func::FuncOp func) {
  Numbering number;
  json::Array args, ops;
  for (BlockArgument argument : func.getArguments()) {
    json::Object entry{{"id", number(argument)}};
    if (auto name = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      sharding::paramArgAttr))
      entry["param"] = name.getValue();
    args.push_back(std::move(entry));
  }
  json::Object result;
  for (Operation &op : func.getBody().front())
    if (op.hasTrait<OpTrait::IsTerminator>())
      result["returns"] = number(op.getOperands());
    else
      ops.push_back(operation(op, number));
  result["args"] = std::move(args);
  result["ops"] = std::move(ops);
  return result;
}

json::Object graph(sharding::GraphOp graph) {
  Numbering number;
  json::Array calls;
  json::Object result{{"inputs", number(graph.getBody().getArguments())}};
  for (Operation &op : graph.getBody().front()) {
    auto call = dyn_cast<sharding::CallOp>(op);
    if (!call) {
      result["loss"] = number(op.getOperand(0));
      continue;
    }
    calls.push_back(json::Object{{"function", call.getCallee()},
                                 {"path", call.getPath()},
                                 {"operands", number(call.getOperands())},
                                 {"results", number(call.getResults())}});
  }
  result["calls"] = std::move(calls);
  return result;
}

} // namespace

int main(int argc, char **argv) {
  bool text = false, valid = argc >= 4;
  huggingface::BuildOptions options;
  for (int i = 4; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "--mlir")
      text = true;
    else if (argument.consume_front("--input="))
      options.inputs.insert(argument.str());
    else if (!argument.consume_front("--target=") ||
             argument.getAsInteger(10, options.targetLength))
      valid = false;
  }
  if (!valid || StringRef(argv[2]).getAsInteger(10, options.microBatch) ||
      StringRef(argv[3]).getAsInteger(10, options.sequenceLength)) {
    llvm::errs() << "usage: hf-model-dump CONFIG MICRO_BATCH SEQUENCE [--mlir] "
                    "[--input=NAME]... [--target=N]\n";
    return 64;
  }
  accel::DiagnosticEngine diagnostics;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto config = huggingface::readModelConfig(argv[1], diagnostics);
  if (config) {
    auto module =
        huggingface::buildModel(context, *config, options, diagnostics);
    if (succeeded(module)) {
      if (failed(verify(**module)))
        return 3;
      if (text) {
        llvm::outs() << **module;
        return 0;
      }
      json::Object functions, result;
      for (auto func : (*module)->getOps<func::FuncOp>())
        functions[func.getSymName()] = function(func);
      result["functions"] = std::move(functions);
      result["graph"] = graph(sharding::findOnly<sharding::GraphOp>(**module));
      llvm::outs() << json::Value(std::move(result)) << "\n";
      return 0;
    }
  }
  llvm::errs() << renderText(diagnostics);
  return int(diagnostics.outcome());
}
