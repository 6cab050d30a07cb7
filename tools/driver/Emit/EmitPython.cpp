//===- EmitPython.cpp - A setting as FSDP2 calls --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/ExecutorOf.h"
#include "passes/Tune/ScriptLines.h"
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Emit/EmitAdvice.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <map>

namespace accel {
namespace {

const char *pythonBody = R"PY(

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "linear",
             "_scaled_dot_product_flash_attention",
             "_scaled_dot_product_flash_attention_for_cpu",
             "_scaled_dot_product_efficient_attention",
             "_scaled_dot_product_cudnn_attention",
             "_scaled_dot_product_fused_attention_overrideable")


def _keep_products(context, op, *args, **kwargs):
    """Matmuls and attention are saved, all else is recomputed."""
    name = op.name().split("::")[-1].split(".")[0] if hasattr(op, "name") else ""
    return (CheckpointPolicy.MUST_SAVE if name in _PRODUCTS
            else CheckpointPolicy.PREFER_RECOMPUTE)


def _checkpoint(model, path, mode):
    module = model.get_submodule(path)
    options = {"checkpoint_impl": CheckpointImpl.NO_REENTRANT}
    if mode == "pointwise":
        options["context_fn"] = functools.partial(
            create_selective_checkpoint_contexts, _keep_products)
    wrapped = checkpoint_wrapper(module, **options)
    if path in OFFLOADED and torch.cuda.is_available():
        wrapped = offload_wrapper(wrapped)
    parent, _, name = path.rpartition(".")
    model.get_submodule(parent).register_module(name, wrapped)


def _unwrapped(module):
    while hasattr(module, "_checkpoint_wrapped_module"):
        module = module._checkpoint_wrapped_module
    return module


def _find(model, path):
    """get_submodule that looks through checkpoint wrappers."""
    module = model
    for name in path.split(".") if path else []:
        module = getattr(_unwrapped(module), name)
    return module


def apply(model, device_type=None):
    """Checkpoints and shards `model` in place. Call it before the optimizer is
    made, on every rank, with the process group initialised."""
    if device_type is None:
        device_type = "cuda" if torch.cuda.is_available() else "cpu"
    # Two dimensions replicate over the first and shard over the second.
    names = [name for name, size in MESH if size > 1 or name == "dp_shard"]
    sizes = tuple(dict(MESH)[name] for name in names)
    mesh = init_device_mesh(device_type, sizes, mesh_dim_names=tuple(names))
    if UPCAST:
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.float()
    for path, mode in CHECKPOINT.items():
        _checkpoint(model, path, mode)
    options = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(**PRECISION)}
    if OFFLOAD_PARAMETERS:
        options["offload_policy"] = CPUOffloadPolicy(
            pin_memory=torch.cuda.is_available())
    # Inner modules first, so that outer units take what is left.
    for paths, reshard in sorted(UNITS, key=lambda unit: -unit[0][0].count(".")):
        modules = [_find(model, path) for path in paths]
        fully_shard(modules if len(modules) > 1 else modules[0],
                    reshard_after_forward=reshard, **options)
    fully_shard(model, **options)
    units = [_find(model, paths[0]) for paths, _ in UNITS]
    for ahead, order, method in (
            (FORWARD_PREFETCH, units, "set_modules_to_forward_prefetch"),
            (BACKWARD_PREFETCH, units[::-1], "set_modules_to_backward_prefetch")):
        if ahead > 1:  # one unit ahead is FSDP2's own
            for i, unit in enumerate(order):
                getattr(unit, method)(order[i + 1:i + 1 + ahead])
    return model


def before_micro_batch(model, slot):
    """Call it before the forward of micro-batch `slot` of ACCUMULATION."""
    model.set_requires_gradient_sync(
        REDUCE_EACH_MICRO_BATCH or slot == ACCUMULATION - 1)
)PY";

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

const char *torchName(plan::DType dtype) {
  switch (dtype) {
  case plan::DType::BF16:
    return "torch.bfloat16";
  case plan::DType::F16:
    return "torch.float16";
  case plan::DType::F64:
    return "torch.float64";
  default:
    return "torch.float32";
  }
}

class PythonWriter {
public:
  PythonWriter(const Advice &advice, const plan::Plan &plan)
      : advice(advice), plan(plan), space(*advice.space), model(*advice.model),
        tuned(*advice.tuned), point(tuned.result.best->point),
        candidate(tune::expand(space, model, point)) {
    candidate.accumulation = split().accumulation;
  }

  const plan::Mesh &mesh() const { return candidate.mesh; }

  std::string run() {
    header();
    constants();
    units();
    checkpoints();
    out += pythonBody;
    return std::move(out);
  }

private:
  const tune::SplitOption &split() const {
    return space.splits[point[tune::Knob::Split]];
  }

  void header() {
    out +=
        "\"\"\"FSDP2 as accel-opt plans it for " + plan.job.modelName + " on " +
        std::to_string(plan.ranks()) + " ranks" +
        (plan.target.empty() ? "" : " of " + plan.target) +
        ".\n\nPredicted per rank: " + formatBytes(tuned.predicted.deviceBytes) +
        ", " + formatSeconds(tuned.predicted.stepSeconds) +
        " a step. Against the configuration:\n";
    std::string changes = summary(space, *advice.editor, point);
    out += "  " + changes + "\n\n";
    out += "  import fsdp2_plan\n"
           "  model = fsdp2_plan.apply(model)      # before the optimizer\n"
           "  for slot in range(fsdp2_plan.ACCUMULATION):\n"
           "      fsdp2_plan.before_micro_batch(model, slot)\n"
           "      (loss(model(...)) / fsdp2_plan.ACCUMULATION).backward()\n"
           "\"\"\"\n"
           "import functools\n\n"
           "import torch\n"
           "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper "
           "import (\n    CheckpointImpl, checkpoint_wrapper, "
           "offload_wrapper)\n"
           "from torch.distributed.device_mesh import init_device_mesh\n"
           "from torch.distributed.fsdp import (\n    CPUOffloadPolicy, "
           "MixedPrecisionPolicy, fully_shard)\n"
           "from torch.utils.checkpoint import (\n    CheckpointPolicy, "
           "create_selective_checkpoint_contexts)\n\n";
  }

  void constants() {
    const PrecisionPolicy &policy =
        advice.policies[point[tune::Knob::Precision]];
    std::string axes;
    for (const plan::Axis &axis : candidate.mesh.axes)
      axes += (axes.empty() ? "(\"" : ", (\"") + axis.name + "\", " +
              std::to_string(axis.size) + ")";
    out += "MESH = [" + axes + "]\n";
    out += "MICRO_BATCH = " + std::to_string(split().microBatch) +
           "\nACCUMULATION = " + std::to_string(split().accumulation) + "\n";
    if (candidate.lossChunks > 1)
      out += "# The script computes a fused linear cross-entropy (Liger "
             "Kernel's), which cuts\n# the tokens into as many parts.\n"
             "LOSS_PARTS = " +
             std::to_string(candidate.lossChunks) + "\n";
    out += std::string("REDUCE_EACH_MICRO_BATCH = ") +
           (candidate.reduceEachMicroBatch ? "True" : "False") + "\n";
    out += "PRECISION = {";
    std::string separator;
    auto dtype = [&](const char *name, const auto &value) {
      if (!value)
        return;
      out += separator + "\"" + name + "\": " + torchName(*value);
      separator = ", ";
    };
    dtype("param_dtype", policy.param);
    dtype("reduce_dtype", policy.reduce);
    dtype("output_dtype", policy.output);
    out += "}\n";
    out += std::string("# Trainable parameters are kept in fp32, as Accelerate "
                       "does.\nUPCAST = ") +
           (policy.upcast == Upcast::None ? "False" : "True") + "\n";
    out += std::string("OFFLOAD_PARAMETERS = ") +
           (candidate.offloadParameters ? "True" : "False") + "\n";
    out +=
        "FORWARD_PREFETCH = " + std::to_string(candidate.forwardPrefetch) +
        "\nBACKWARD_PREFETCH = " + std::to_string(candidate.backwardPrefetch) +
        "\n";
  }

  static std::string parent(const std::string &fqn) {
    size_t dot = fqn.rfind('.');
    return dot == std::string::npos ? "" : fqn.substr(0, dot);
  }

  /// The modules of a unit: its layers, a block of one, or what holds its
  /// parameters.
  std::vector<std::string> modulesOf(int unit) const {
    const tune::WrapOption &wrap = space.wraps[point[tune::Knob::Wrap]];
    std::vector<std::string> result;
    auto add = [&](const std::string &path) {
      if (std::find(result.begin(), result.end(), path) == result.end())
        result.push_back(path);
    };
    auto range = wrap.layers[unit];
    if (range[0] >= 0) {
      for (int l = range[0]; l <= range[1]; ++l)
        add(model.calls[space.layers[l]].path);
      if (range[0] == range[1] && wrap.perLayer < 1)
        return {blockOf(unit, result[0])};
      return result;
    }
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      if (candidate.unitOf[p] != unit)
        continue;
      add(parent(model.parameters[p].fqn));
      for (const plan::Parameter &known : plan.parameters)
        if (known.fqn == model.parameters[p].fqn)
          for (const std::string &alias : known.aliases)
            add(parent(alias));
    }
    return result;
  }

  /// The child of `layer` that holds all of the unit, or the layer itself.
  std::string blockOf(int unit, const std::string &layer) const {
    std::string block;
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      if (candidate.unitOf[p] != unit)
        continue;
      const std::string &fqn = model.parameters[p].fqn;
      std::string child = fqn.substr(0, fqn.find('.', layer.size() + 1));
      if (!block.empty() && block != child)
        return layer;
      block = child;
    }
    return block;
  }

  void units() {
    out += "# Modules that are gathered together, in the order of the forward; "
           "whether\n# they are freed after it. The root takes the rest.\n"
           "UNITS = [\n";
    std::vector<int> order; // by first use
    for (const StepCall &call : model.calls)
      for (int p : call.parameters)
        if (int u = candidate.unitOf[p];
            u != candidate.rootUnit &&
            std::find(order.begin(), order.end(), u) == order.end())
          order.push_back(u);
    for (int u : order) {
      out += "    ([";
      std::string separator;
      for (const std::string &path : modulesOf(u)) {
        out += separator + quoted(path);
        separator = ", ";
      }
      out += std::string("], ") +
             (candidate.reshardAfterForward[u] ? "True" : "False") + "),\n";
    }
    out += "]\n";
  }

  void checkpoints() {
    out += "# What the backward recomputes: all of a layer, or all but matmuls "
           "and "
           "attention.\nCHECKPOINT = {\n";
    std::string offloaded;
    for (size_t c = 0; c < model.calls.size(); ++c) {
      const StepCall &call = model.calls[c];
      const std::string &name =
          model.kinds[call.kind].variants[candidate.variants[c]].name;
      if (!call.layer || name == "none")
        continue;
      out += "    " + quoted(call.path) + ": " + quoted(name) + ",\n";
      if (candidate.offloadActivations[c])
        offloaded += (offloaded.empty() ? "" : ", ") + quoted(call.path);
    }
    out += "}\nOFFLOADED = {" + offloaded +
           (offloaded.empty() ? "}  # inputs of layers on the host\n" : "}\n");
  }

  const Advice &advice;
  const plan::Plan &plan;
  const tune::Space &space;
  const StepModel &model;
  const Tuned &tuned;
  const tune::Point &point;
  Candidate candidate;
  std::string out;
};

} // namespace

std::optional<std::string> emitPython(const Advice &advice,
                                      const plan::Plan &plan,
                                      DiagnosticEngine &engine) {
  const JobConfig &job = advice.editor->configuration();
  if (advice.executor != FrameworkKind::Fsdp2) {
    engine.error("emit-python", job.file,
                 std::string("--emit python writes calls of FSDP2, and the "
                             "executor is ") +
                     toString(advice.executor),
                 launchedBy(job) == FrameworkKind::Fsdp2
                     ? "pass --executor fsdp2"
                     : "write distributed_type: FSDP and fsdp_version: 2");
    return std::nullopt;
  }
  if (!advice.tuned->result.best) {
    engine.error("nothing-fits", job.file,
                 "no setting fits, so there is none to write");
    return std::nullopt;
  }
  PythonWriter writer(advice, plan);
  if (const std::string axes = tune::besideFullyShard(writer.mesh());
      !axes.empty()) {
    engine.error(
        "emit-python", job.file,
        "--emit python writes calls of fully_shard, which shards and "
        "replicates parameters, and the mesh has " +
            axes + " beside",
        "plan a mesh of dp_replicate and dp_shard alone; of an accelerate "
        "file --emit accelerate writes what a file can say");
    return std::nullopt;
  }
  return writer.run();
}

} // namespace accel
