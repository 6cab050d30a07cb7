//===- DecideFramework.cpp - What a framework does by itself --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/Fp8Layers.h"
#include "passes/Frameworks/JobFramework.h"
#include "runtime/plan/Optimizers.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_DECIDEFRAMEWORKPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

/// torch's DistributedDataParallel: bucket_cap_mb, and the first bucket.
constexpr int64_t ddpBucketBytes = 25 << 20, ddpFirstBucketBytes = 1 << 20;
/// DeepSpeed's zero_optimization (runtime/zero/config.py), in elements.
constexpr int64_t zeroReduceBucket = 500'000'000,
                  zeroPrefetchBucket = 50'000'000,
                  zeroPersistenceThreshold = 100'000;

struct DecideFrameworkPass
    : accel::impl::DecideFrameworkPassBase<DecideFrameworkPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (!job) {
      module.emitError("decide-framework needs a sharding.job");
      return signalPassFailure();
    }
    const frameworks::Framework &framework = frameworkOf(module);
    const bool own = framework.kind() == FrameworkKind::AccelRun;
    if (!own || asked("offload").first)
      decideOffload(job);
    if (asked("ddp").first && (own || framework.kind() == FrameworkKind::Ddp))
      decideBuckets(job);
    if (own)
      return;
    decideOptimizerStep(job, framework);
    decideFp8(job, framework);
    if (framework.kind() == FrameworkKind::Ddp && !job.getDdpAttr())
      decideBuckets(job);
    if (framework.kind() == FrameworkKind::Deepspeed)
      decideZero(job, framework);
    if (framework.kind() == FrameworkKind::Megatron)
      decideMegatron(job);
    decideCompile(job, framework);
  }

private:
  /// The request about `what`, and its value, or an empty one.
  std::pair<sharding::RequestOp, DictionaryAttr> asked(StringRef what) {
    auto request = sharding::findRequest(getOperation(), what);
    return {request,
            request ? request.getValue() : DictionaryAttr::get(&getContext())};
  }
  sharding::BecauseAttr because(sharding::RequestOp request, StringRef usual) {
    return request ? request.getBecause()
                   : sharding::BecauseAttr::get(&getContext(),
                                                ("default: " + usual).str());
  }
  static int64_t number(DictionaryAttr value, StringRef name, int64_t other) {
    auto attr = value.getAs<IntegerAttr>(name);
    return attr ? attr.getInt() : other;
  }
  static bool flag(DictionaryAttr value, StringRef name) {
    return static_cast<bool>(value.get(name));
  }

  void decideOffload(sharding::JobOp job) {
    auto [request, value] = asked("offload");
    job.setOffloadAttr(sharding::OffloadAttr::get(
        &getContext(), flag(value, "parameters"), flag(value, "optimizer"),
        flag(value, "activations"),
        because(request, "nothing waits in host memory"),
        value ? value.getAs<sharding::DiskAttr>("disk")
              : sharding::DiskAttr()));
  }

  void decideOptimizerStep(sharding::JobOp job,
                           const frameworks::Framework &framework) {
    auto [request, value] = asked("optimizer");
    auto kernel = framework.optimizerKernel(job.getDevice() == "cpu");
    const auto *description = optimizerOf(getOperation());
    if (description && !llvm::is_contained(description->kernels, kernel.value))
      kernel = {description->kernels.front(), "the kernel that it has"};
    sharding::OptimizerKernel chosen =
        kernel.value == OptimizerKernel::Fused
            ? sharding::OptimizerKernel::Fused
        : kernel.value == OptimizerKernel::Foreach
            ? sharding::OptimizerKernel::Foreach
            : sharding::OptimizerKernel::ForLoop;
    sharding::BecauseAttr why = because({}, kernel.why);
    if (auto name = value.getAs<StringAttr>("kernel"))
      if (auto given = sharding::symbolizeOptimizerKernel(name.getValue())) {
        chosen = *given;
        why = request.getBecause();
      }
    auto state = value.getAs<TypeAttr>("state");
    job.setOptimizerStepAttr(sharding::OptimizerStepAttr::get(
        &getContext(), chosen, flag(value, "clip"), why,
        state ? state.getValue() : Type(), flag(value, "one_by_one"),
        flag(value, "paged"), flag(value, "wide_embeddings")));
  }

  /// Nothing is compiled that nobody asked for.
  void decideCompile(sharding::JobOp job,
                     const frameworks::Framework &framework) {
    auto [request, value] = asked("compile");
    auto named = value.getAs<StringAttr>("regions");
    auto regions = sharding::symbolizeCompileRegions(named ? named.getValue()
                                                           : StringRef());
    if (!regions)
      return;
    const auto zero = job.getZeroAttr();
    const auto ends =
        framework.kind() == FrameworkKind::Ddp ? sharding::CompileEnds::Buckets
        : zero && zero.getStage() == 3         ? sharding::CompileEnds::Modules
                                       : sharding::CompileEnds::Functions;
    job.setCompileAttr(sharding::CompileAttr::get(&getContext(), *regions, ends,
                                                  flag(value, "replays") &&
                                                      job.getDevice() != "cpu",
                                                  request.getBecause()));
  }

  void decideFp8(sharding::JobOp job, const frameworks::Framework &framework) {
    auto [request, value] = asked("fp8");
    auto named = value.getAs<StringAttr>("recipe");
    auto recipe =
        sharding::symbolizeFp8Recipe(named ? named.getValue() : StringRef());
    if (!recipe)
      return;
    const bool delayed = *recipe == sharding::Fp8Recipe::Delayed;
    // torchao asserts that what is gathered in fp8 has one scale.
    const bool gathers = flag(value, "gathers") && framework.gathersFp8() &&
                         *recipe == sharding::Fp8Recipe::Tensorwise;
    job.setFp8Attr(sharding::Fp8Attr::get(
        &getContext(), *recipe, gathers,
        delayed ? number(value, "amax_history", 1024) : 0,
        request.getBecause()));
    // torchtitan's filter leaves out the output layer alone (float8.py).
    markFp8Layers(getOperation(), delayed,
                  /*skipsFirst=*/kernelsOf(getOperation()).transformers);
  }

  void decideBuckets(sharding::JobOp job) {
    auto [request, value] = asked("ddp");
    auto hook = value.getAs<StringAttr>("hook");
    job.setDdpAttr(sharding::DdpAttr::get(
        &getContext(), number(value, "bucket", ddpBucketBytes),
        number(value, "bucket", ddpFirstBucketBytes), flag(value, "as_view"),
        hook ? hook.getValue() : StringRef(),
        because(request,
                "torch's bucket_cap_mb, and a first bucket of 1 MiB")));
  }

  void decideZero(sharding::JobOp job, const frameworks::Framework &framework) {
    auto [request, value] = asked("zero");
    const int64_t stage = number(value, "stage", 2);
    job.setZeroAttr(sharding::ZeroAttr::get(
        &getContext(), stage, number(value, "reduce_bucket", zeroReduceBucket),
        number(value, "prefetch_bucket", zeroPrefetchBucket),
        number(value, "persistence_threshold", zeroPersistenceThreshold),
        flag(value, "overlap"),
        because(request, "DeepSpeed's zero_optimization"),
        number(value, "sub_group", sharding::defaultZeroSubGroup),
        decideZeroPlus(job, framework, stage)));
  }

  void decideMegatron(sharding::JobOp job) {
    auto [request, value] = asked("megatron");
    job.setMegatronAttr(sharding::MegatronAttr::get(
        &getContext(), flag(value, "distributed"),
        flag(value, "overlap_gradients"), flag(value, "overlap_parameters"),
        number(value, "chunks", 1), because(request, "Megatron's arguments"),
        std::max<int64_t>(1, number(value, "experts", 1)),
        std::max<int64_t>(1, number(value, "expert_tensor", 1)),
        flag(value, "overlap_tensor"), flag(value, "sends_once"),
        flag(value, "overlap_experts"), number(value, "last_layers", 0)));
  }

  /// Null where nobody asks for ZeRO++ or MiCS.
  sharding::ZeroPlusAttr decideZeroPlus(sharding::JobOp job,
                                        const frameworks::Framework &framework,
                                        int64_t stage) {
    auto [request, value] = asked("zero_plus");
    auto mesh = sharding::findOnly<sharding::MeshOp>(getOperation());
    if (!request || !mesh)
      return {};
    plan::Mesh ranks;
    for (auto axis : mesh.getAxes().getAsRange<sharding::AxisAttr>())
      ranks.resize(axis.getName().str(), axis.getSize());
    const auto chosen = framework.zeroPlus(
        {{number(value, "secondary", 0), number(value, "shard", 0)},
         flag(value, "weights"),
         flag(value, "gradients")},
        stage, ranks, std::max<int64_t>(job.getRanksPerNode().value_or(1), 1));
    const frameworks::ZeroPlus &plus = chosen.value;
    return sharding::ZeroPlusAttr::get(
        &getContext(), plus.groups.secondary, plus.groups.shard,
        plus.quantizedWeights, plus.quantizedGradients,
        *chosen.why ? sharding::BecauseAttr::get(&getContext(), chosen.why)
                    : request.getBecause());
  }
};

} // namespace
