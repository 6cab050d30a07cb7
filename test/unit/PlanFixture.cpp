//===- PlanFixture.cpp - Plans of a small decoder for tests ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/PlanFixture.h"

#include "runtime/plan/Timeline.h"

#include <algorithm>

namespace accel::plan::test {

int FunctionBuilder::slot(DType dtype, std::vector<int64_t> shape, int base) {
  int index = function.slots.size();
  function.slots.push_back({dtype, std::move(shape), base < 0 ? index : base});
  return index;
}

int FunctionBuilder::input(DType dtype, std::vector<int64_t> shape) {
  function.inputs.push_back(slot(dtype, std::move(shape)));
  return function.inputs.back();
}

int FunctionBuilder::param(const std::string &name, DType dtype,
                           std::vector<int64_t> shape) {
  function.params.push_back(slot(dtype, std::move(shape)));
  function.paramNames.push_back(name);
  return function.params.back();
}

int FunctionBuilder::gradient(const std::string &name, DType dtype,
                              std::vector<int64_t> shape) {
  function.gradients.push_back(slot(dtype, std::move(shape)));
  function.gradientNames.push_back(name);
  return function.gradients.back();
}

static Arg tensor(int slot) {
  Arg arg;
  arg.kind = Arg::Kind::Tensor;
  arg.slot = slot;
  return arg;
}

int FunctionBuilder::view(const std::string &op, int of,
                          std::vector<int64_t> shape) {
  Instruction instruction;
  instruction.op = op;
  instruction.args = {tensor(of)};
  int result =
      slot(function.slots[of].dtype, std::move(shape), function.slots[of].base);
  instruction.results = {result};
  function.instructions.push_back(instruction);
  return result;
}

int FunctionBuilder::make(const std::string &op, std::vector<int> args,
                          DType dtype, std::vector<int64_t> shape, double flops,
                          int64_t workspace) {
  into(op, std::move(args), flops);
  Instruction &instruction = function.instructions.back();
  instruction.workspaceBytes = workspace;
  int result = slot(dtype, std::move(shape));
  instruction.results = {result};
  instruction.movedBytes += function.slotBytes(result);
  return result;
}

void FunctionBuilder::into(const std::string &op, std::vector<int> args,
                           double flops) {
  Instruction instruction;
  instruction.op = op;
  for (int arg : args) {
    instruction.args.push_back(tensor(arg));
    instruction.movedBytes += function.slotBytes(function.slots[arg].base);
  }
  instruction.flops = flops;
  instruction.where = "model.layers.*." + op.substr(6);
  function.instructions.push_back(instruction);
}

Function FunctionBuilder::finish(std::vector<int> outputs) {
  function.outputs = std::move(outputs);
  std::vector<int> last(function.slots.size(), -1);
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    for (const Arg &arg : function.instructions[i].args)
      last[arg.slot] = i;
    for (int result : function.instructions[i].results)
      last[result] = i;
  }
  for (const std::vector<int> *kept :
       {&function.params, &function.gradients, &function.outputs})
    for (int slot : *kept)
      last[slot] = -1;
  for (size_t slot = 0; slot < last.size(); ++slot)
    if (last[slot] >= 0)
      function.instructions[last[slot]].frees.push_back(slot);
  return function;
}

Size llama405() {
  Size size;
  size.layers = 126;
  size.hidden = 16384;
  size.keyValue = 1024;
  size.feedForward = 53248;
  size.vocab = 128256;
  size.tokens = 8192;
  size.shardRanks = 512;
  size.replicas = 32;
  size.accumulation = 4;
  size.gather = DType::BF16;
  size.allToAll = false;
  return size;
}

namespace {

struct Weight {
  const char *name;
  int64_t out, in; // in 0: a vector
};

class PlanBuilder {
public:
  explicit PlanBuilder(const Size &size) : s(size) {}
  Plan build();

private:
  void unit(const std::string &name, const std::vector<Weight> &weights);
  void functions();
  Program program(const std::string &name, bool first, bool last, bool train);

  std::vector<Weight> layerWeights() const {
    return {{"self_attn.q_proj.weight", s.hidden, s.hidden},
            {"self_attn.k_proj.weight", s.keyValue, s.hidden},
            {"self_attn.v_proj.weight", s.keyValue, s.hidden},
            {"self_attn.o_proj.weight", s.hidden, s.hidden},
            {"mlp.gate_proj.weight", s.feedForward, s.hidden},
            {"mlp.up_proj.weight", s.feedForward, s.hidden},
            {"mlp.down_proj.weight", s.hidden, s.feedForward},
            {"input_layernorm.weight", s.hidden, 0},
            {"post_attention_layernorm.weight", s.hidden, 0}};
  }
  static std::vector<int64_t> shapeOf(const Weight &w) {
    return w.in ? std::vector<int64_t>{w.out, w.in}
                : std::vector<int64_t>{w.out};
  }

  Size s;
  Plan plan;
};

void PlanBuilder::unit(const std::string &name,
                       const std::vector<Weight> &weights) {
  Unit unit;
  unit.name = name;
  unit.shardAxes = {"dp_shard"};
  unit.replicateAxes = {"dp_replicate"};
  unit.whole = s.whole;
  unit.gather = s.gather;
  unit.reduce = s.reduce;
  unit.states = {{"exp_avg", DType::F32}, {"exp_avg_sq", DType::F32}};
  int64_t offset = 0;
  for (const Weight &weight : weights) {
    Parameter parameter;
    parameter.fqn = name.empty() ? weight.name : name + "." + weight.name;
    parameter.shape = shapeOf(weight);
    parameter.unit = plan.units.size();
    parameter.offset = offset;
    if (weight.in) {
      parameter.init.kind = Initializer::Kind::Normal;
      parameter.init.value = 0.02;
    } else {
      parameter.init.kind = Initializer::Kind::Ones;
    }
    offset += (parameter.numel() + 63) / 64 * 64;
    unit.numel += parameter.numel();
    unit.parameters.push_back(plan.parameters.size());
    plan.parameters.push_back(parameter);
  }
  const int64_t quantum = 64 * s.shardRanks;
  unit.padded = (offset + quantum - 1) / quantum * quantum;
  unit.groupRanges = {{0, 0, unit.padded}};
  plan.units.push_back(unit);
}

void PlanBuilder::functions() {
  const DType a = s.gather;
  const int64_t t = s.tokens, h = s.hidden, f = s.feedForward, k = s.keyValue;
  auto product = [&](int64_t m, int64_t n) { return 2.0 * t * m * n; };
  {
    FunctionBuilder b("Embedding.forward");
    int ids = b.input(DType::I64, {t});
    int w = b.param("weight", a, {s.vocab, h});
    int x = b.make("aten::embedding", {w, ids}, a, {t, h});
    plan.functions.push_back(b.finish({x}));
  }
  auto layer = [&](bool train) {
    FunctionBuilder b(train ? "DecoderLayer.forward" : "DecoderLayer.eval");
    int x = b.input(a, {t, h});
    std::vector<int> w;
    for (const Weight &weight : layerWeights())
      w.push_back(b.param(weight.name, a, shapeOf(weight)));
    auto linear = [&](int in, int at) {
      const Weight weight = layerWeights()[at];
      int wt = b.view("aten::t", w[at], {weight.in, weight.out});
      return b.make("aten::mm", {in, wt}, a, {t, weight.out},
                    product(weight.in, weight.out));
    };
    int n = b.make("aten::rms_norm", {x, w[7]}, a, {t, h});
    int q = linear(n, 0), key = linear(n, 1), v = linear(n, 2);
    int o = b.make("aten::_scaled_dot_product_flash_attention_for_cpu",
                   {q, key, v}, a, {t, h}, 2.0 * t * t * h, 147968);
    int r = b.make("aten::add.Tensor", {x, linear(o, 3)}, a, {t, h});
    int m = b.make("aten::rms_norm", {r, w[8]}, a, {t, h});
    int g = linear(m, 4), u = linear(m, 5);
    int p = b.make("aten::mul.Tensor", {g, u}, a, {t, f});
    int y = b.make("aten::add.Tensor", {r, linear(p, 6)}, a, {t, h});
    std::vector<int> outputs = {y};
    if (train)
      outputs.insert(outputs.end(), {q, key, v, o, r, g, u});
    plan.functions.push_back(b.finish(outputs));
  };
  layer(true);
  layer(false);
  {
    FunctionBuilder b("Head.eval");
    int x = b.input(a, {t, h}), labels = b.input(DType::I64, {t});
    int w = b.param("lm_head.weight", a, {s.vocab, h});
    b.param("model.norm.weight", a, {h});
    int logits = b.make("aten::mm", {x, b.view("aten::t", w, {h, s.vocab})}, a,
                        {t, s.vocab}, product(h, s.vocab));
    int loss =
        b.make("aten::nll_loss_forward", {logits, labels}, DType::F32, {});
    plan.functions.push_back(b.finish({loss}));
  }
  {
    FunctionBuilder b("Head.step");
    int x = b.input(a, {t, h}), labels = b.input(DType::I64, {t});
    int seed = b.input(DType::F32, {});
    int w = b.param("lm_head.weight", a, {s.vocab, h});
    int n = b.param("model.norm.weight", a, {h});
    int dw = b.gradient("lm_head.weight", s.reduce, {s.vocab, h});
    int dn = b.gradient("model.norm.weight", s.reduce, {h});
    int y = b.make("aten::rms_norm", {x, n}, a, {t, h});
    int logits = b.make("aten::mm", {y, b.view("aten::t", w, {h, s.vocab})}, a,
                        {t, s.vocab}, product(h, s.vocab));
    int loss =
        b.make("aten::nll_loss_forward", {logits, labels}, DType::F32, {});
    int dl = b.make("aten::nll_loss_backward", {seed, logits, labels}, a,
                    {t, s.vocab});
    b.into("aten::mm.out", {b.view("aten::t", dl, {s.vocab, t}), y, dw},
           product(h, s.vocab));
    int dy = b.make("aten::mm", {dl, w}, a, {t, h}, product(h, s.vocab));
    int dx = b.make("aten::_fused_rms_norm_backward", {dy, x}, a, {t, h});
    b.into("aten::copy_", {dn, dy});
    plan.functions.push_back(b.finish({loss, dx}));
  }
  {
    FunctionBuilder b("DecoderLayer.backward");
    int x = b.input(a, {t, h});
    int q = b.input(a, {t, h}), key = b.input(a, {t, k}),
        v = b.input(a, {t, k}), o = b.input(a, {t, h}), r = b.input(a, {t, h}),
        g = b.input(a, {t, f}), u = b.input(a, {t, f}), dy = b.input(a, {t, h});
    std::vector<int> w, dw;
    for (const Weight &weight : layerWeights())
      w.push_back(b.param(weight.name, a, shapeOf(weight)));
    for (const Weight &weight : layerWeights())
      dw.push_back(b.gradient(weight.name, s.reduce, shapeOf(weight)));
    auto linear = [&](int in, int grad, int at) {
      const Weight weight = layerWeights()[at];
      b.into("aten::mm.out",
             {b.view("aten::t", grad, {weight.out, t}), in, dw[at]},
             product(weight.in, weight.out));
      return b.make("aten::mm", {grad, w[at]}, a, {t, weight.in},
                    product(weight.in, weight.out));
    };
    int p = b.make("aten::mul.Tensor", {g, u}, a, {t, f});
    int dp = linear(p, dy, 6);
    int dg = b.make("aten::mul.Tensor", {dp, u}, a, {t, f});
    int du = b.make("aten::mul.Tensor", {dp, g}, a, {t, f});
    int m = b.make("aten::rms_norm", {r, w[8]}, a, {t, h});
    int dm = b.make("aten::add.Tensor", {linear(m, dg, 4), linear(m, du, 5)}, a,
                    {t, h});
    int dr = b.make("aten::add.Tensor", {dm, dy}, a, {t, h});
    b.into("aten::copy_", {dw[8], dm});
    int dO = linear(o, dr, 3);
    int dq = b.make("aten::_scaled_dot_product_flash_attention_backward",
                    {dO, q, key, v, o}, a, {t, h}, 5.0 * t * t * h, 262400);
    int dk = b.make("aten::sum.dim_IntList", {dq, key}, a, {t, k});
    int n = b.make("aten::rms_norm", {x, w[7]}, a, {t, h});
    int dn = b.make("aten::add.Tensor", {linear(n, dq, 0), linear(n, dk, 1)}, a,
                    {t, h});
    int dn2 = b.make("aten::add.Tensor", {dn, linear(n, dk, 2)}, a, {t, h});
    b.into("aten::copy_", {dw[7], dn2});
    int dx = b.make("aten::add.Tensor", {dn2, dr}, a, {t, h});
    plan.functions.push_back(b.finish({dx}));
  }
  {
    FunctionBuilder b("Embedding.backward");
    int ids = b.input(DType::I64, {t}), dx = b.input(a, {t, h});
    int dw = b.gradient("weight", s.reduce, {s.vocab, h});
    b.into("aten::zero_", {dw});
    b.into("aten::index_add_", {dw, ids, dx});
    plan.functions.push_back(b.finish({}));
  }
}

Program PlanBuilder::program(const std::string &name, bool first, bool last,
                             bool train) {
  Program p;
  p.name = name;
  int timepoint = 0;
  auto value = [&](const std::string &name, DType dtype,
                   std::vector<int64_t> shape) {
    Value v{name, dtype, std::move(shape)};
    v.bytes = defaultBytes(v);
    p.values.push_back(v);
    return int(p.values.size()) - 1;
  };
  auto add = [&](ProgramInstructionKind kind, int unit = -1,
                 std::optional<Role> role = {}) -> ProgramInstruction & {
    ProgramInstruction &instruction = p.instructions.emplace_back();
    instruction.kind = kind;
    instruction.stream = defaultStream(kind);
    instruction.unit = unit;
    instruction.role = role.value_or(defaultRole(kind));
    if (unit >= 0)
      instruction.where = plan.units[unit].name;
    return instruction;
  };
  auto awaitLast = [&](int unit, Role role) {
    add(ProgramInstructionKind::Await, unit, role).timepoint = timepoint - 1;
  };
  auto fill = [&](int unit) {
    ProgramInstruction &start = add(ProgramInstructionKind::AllGather, unit);
    start.axes = plan.units[unit].shardAxes;
    start.timepoint = timepoint++;
    awaitLast(unit, Role::Gathered);
  };
  auto gather = [&](int unit) {
    if (s.whole)
      return;
    add(ProgramInstructionKind::Alloc, unit);
    fill(unit);
  };
  auto freeGathered = [&](int unit) {
    if (!s.whole)
      add(ProgramInstructionKind::Free, unit, Role::Gathered);
  };
  auto reduce = [&](int unit) {
    if (first)
      add(ProgramInstructionKind::Alloc, unit, Role::ShardGradient);
    if (s.allToAll)
      add(ProgramInstructionKind::Alloc, unit, Role::Receive);
    ProgramInstruction &start =
        add(ProgramInstructionKind::ReduceScatter, unit);
    start.axes = plan.units[unit].shardAxes;
    start.algorithm = s.allToAll ? "all_to_all" : "direct";
    start.accumulate = !first;
    start.timepoint = timepoint++;
    awaitLast(unit, Role::Gradient);
    if (s.allToAll)
      add(ProgramInstructionKind::Free, unit, Role::Receive);
    add(ProgramInstructionKind::Free, unit, Role::Gradient);
    if (last && s.replicas > 1) {
      ProgramInstruction &all = add(ProgramInstructionKind::AllReduce, unit);
      all.axes = plan.units[unit].replicateAxes;
      all.timepoint = timepoint++;
      awaitLast(unit, Role::ShardGradient);
    }
    if (last && s.statesOnHost) {
      add(ProgramInstructionKind::Offload, unit).timepoint = timepoint++;
      awaitLast(unit, Role::ShardGradient);
      add(ProgramInstructionKind::Free, unit, Role::ShardGradient);
    }
  };
  auto call = [&](int function, std::vector<int> inputs,
                  std::vector<bool> consumed, std::vector<int> outputs,
                  int unit, std::vector<int> params,
                  std::vector<int> gradients) {
    ProgramInstruction &instruction = add(ProgramInstructionKind::Call);
    instruction.function = function;
    instruction.inputs = std::move(inputs);
    instruction.consumed = std::move(consumed);
    instruction.outputs = std::move(outputs);
    for (int index : params)
      instruction.params.push_back({unit, plan.units[unit].parameters[index]});
    for (int index : gradients)
      instruction.gradients.push_back(
          {unit, plan.units[unit].parameters[index], false});
    instruction.where = unit == 0 ? "model" : plan.units[unit].name;
  };
  const DType a = s.gather;
  const int64_t t = s.tokens, h = s.hidden, f = s.feedForward, k = s.keyValue;
  int ids = value("input_ids", DType::I64, {t});
  int labels = value("labels", DType::I64, {t});
  p.inputs = {ids, labels};
  int seed = -1;
  if (train) {
    seed = value("loss_seed", DType::F32, {});
    p.inputs.push_back(seed);
  }
  // The root keeps its gathered buffer to the end.
  gather(0);
  int x = value("embedding", a, {t, h});
  call(0, {ids}, {!train}, {x}, 0, {0}, {});
  std::vector<std::vector<int>> saved;
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  for (int64_t i = 0; i < s.layers; ++i) {
    gather(i + 1);
    const std::string at = plan.units[i + 1].name + ".";
    int y = value(at + "out", a, {t, h});
    if (train) {
      std::vector<int> outputs = {y};
      std::vector<int> keep = {x};
      auto save = [&](const char *name, int64_t width) {
        outputs.push_back(value(at + name, a, {t, width}));
        keep.push_back(outputs.back());
      };
      save("q", h);
      save("k", k);
      save("v", k);
      save("attention", h);
      save("residual", h);
      save("gate", f);
      save("up", f);
      call(1, {x}, {false}, outputs, i + 1, all, {});
      saved.push_back(keep);
    } else {
      call(2, {x}, {true}, {y}, i + 1, all, {});
    }
    freeGathered(i + 1);
    x = y;
  }
  p.loss = value("loss", DType::F32, {});
  if (!train) {
    call(3, {x, labels}, {true, true}, {p.loss}, 0, {2, 1}, {});
    freeGathered(0);
    return p;
  }
  add(ProgramInstructionKind::Alloc, 0, Role::Gradient);
  int grad = value("head.grad", a, {t, h});
  call(4, {x, labels, seed}, {true, true, true}, {p.loss, grad}, 0, {2, 1},
       {2, 1});
  freeGathered(0);
  for (int64_t i = s.layers - 1; i >= 0; --i) {
    gather(i + 1);
    add(ProgramInstructionKind::Alloc, i + 1, Role::Gradient);
    int next = value(plan.units[i + 1].name + ".grad", a, {t, h});
    std::vector<int> inputs = saved[i];
    inputs.push_back(grad);
    call(5, inputs, std::vector<bool>(inputs.size(), true), {next}, i + 1, all,
         all);
    grad = next;
    freeGathered(i + 1);
    reduce(i + 1);
  }
  call(6, {ids, grad}, {true, true}, {}, 0, {}, {0});
  reduce(0);
  if (!last)
    return p;
  const Stream updates = s.statesOnHost ? Stream::Host : Stream::Compute;
  if (s.clip)
    add(ProgramInstructionKind::GradNorm).stream = updates;
  for (int64_t unit = 0; unit <= s.layers; ++unit) {
    add(ProgramInstructionKind::Optimizer, unit).stream = updates;
    if (!s.statesOnHost)
      add(ProgramInstructionKind::Free, unit, Role::ShardGradient);
    if (s.whole)
      fill(unit);
  }
  return p;
}

Plan PlanBuilder::build() {
  plan.generator = "accel-opt test";
  plan.target = s.gather == DType::F32 ? "cpu" : "h100-sxm-80gb";
  plan.device = s.gather == DType::F32 && !s.statesOnHost ? "cpu" : "cuda";
  plan.offload.states = s.statesOnHost;
  plan.axes = {{"dp_replicate", s.replicas}, {"dp_shard", s.shardRanks}};
  Job &job = plan.job;
  job.modelName = "test";
  job.modelPath = "models/test";
  job.sequenceLength = s.tokens;
  job.vocab = s.vocab;
  job.accumulation = s.accumulation;
  job.optimizer.groups = {{3e-4, 0.1}};
  job.optimizer.maxGradNorm = s.clip ? 1.0 : 0.0;
  job.schedule.steps = 100;
  unit("", {{"model.embed_tokens.weight", s.vocab, s.hidden},
            {"model.norm.weight", s.hidden, 0},
            {"lm_head.weight", s.vocab, s.hidden}});
  for (int64_t i = 0; i < s.layers; ++i)
    unit("model.layers." + std::to_string(i), layerWeights());
  functions();
  auto add = [&](const Program &program) {
    plan.programs.push_back(program);
    return int(plan.programs.size()) - 1;
  };
  if (s.accumulation == 1) {
    plan.step = {{add(program("train", true, true, true)), 1}};
  } else {
    plan.step.emplace_back(add(program("first", true, false, true)), 1);
    if (s.accumulation > 2)
      plan.step.emplace_back(add(program("middle", false, false, true)),
                             s.accumulation - 2);
    plan.step.emplace_back(add(program("last", false, true, true)), 1);
  }
  if (s.eval)
    plan.eval = add(program("eval", false, false, false));
  for (const Unit &unit : plan.units) {
    Decision decision;
    decision.what = "reshard";
    decision.where = unit.name;
    decision.choice = "after forward";
    decision.why = "fsdp_reshard_after_forward is true";
    decision.file = "fsdp.yaml";
    decision.line = 12;
    decision.column = 3;
    decision.alternatives = {"keep the parameters: +1 GiB"};
    plan.decisions.push_back(decision);
  }
  predictMemory(plan);
  return plan;
}

} // namespace

Plan makePlan(const Size &size) { return PlanBuilder(size).build(); }

} // namespace accel::plan::test
