//===- MegatronExperts.cpp - Experts as Megatron-Core runs them -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/MegatronExperts.h"

#include "passes/Cost/CollectiveCost.h"
#include "passes/Cost/OpCost.h"
#include "passes/StepModel/MegatronMixture.h"
#include "passes/StepModel/SegmentOrder.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Operands.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel {
namespace {

using plan::DType;
using plan::Instruction;

using Shape = std::vector<int64_t>;

class Writer {
public:
  Writer(SegmentGraph &graph, const ExpertRanks &experts, const Target *target)
      : graph(graph), function(graph.function), experts(experts),
        target(target) {}

  std::string run() {
    if (!findParameters())
      return "";
    tensor = std::max<int64_t>(1, graph.mesh.size("tp"));
    const MixtureHalf forward = findMixture(graph, module, true),
                      backward = findMixture(graph, module, false);
    if (!readInputs(forward.reads) || forward.gives.size() != 1)
      return "a mixture of experts reads and gives other than one tensor";
    readSizes();
    if (all % experts.ranks != 0)
      return std::to_string(all) + " experts are not divided by " +
             std::to_string(experts.ranks) + " ranks (expert_model_parallel_" +
             "size)";
    if (inner % experts.tensor != 0)
      return "experts of " + std::to_string(inner) +
             " elements are not divided by " + std::to_string(experts.tensor) +
             " ranks (expert_tensor_parallel_size)";
    makeParameters();
    write(forward, backward);
    if (experts.overlapped && target)
      overlap();
    return "";
  }

  /// One micro-batch's exchanges run beside another's computation, as far as
  /// there is some.
  void overlap() {
    double sent = 0, computed = 0;
    for (size_t i = 0; i < function.instructions.size(); ++i)
      if (isDispatch(i))
        sent += graph.waits[i];
      else if (!graph.view[i])
        computed += opSeconds(function, function.instructions[i], *target);
    const double hidden = std::min(sent, computed) * target->overlap;
    for (size_t i = 0; sent > 0 && i < function.instructions.size(); ++i)
      if (isDispatch(i))
        graph.waits[i] *= 1 - hidden / sent;
  }
  bool isDispatch(size_t i) const {
    return function.instructions[i].op == exchangeOp;
  }

private:
  int base(int slot) const { return function.slots[slot].base; }
  const Shape &shapeOf(int slot) const { return function.slots[slot].shape; }

  //===--- What is there --------------------------------------------------===//

  bool findParameters() {
    for (size_t i = 0; i < function.params.size(); ++i) {
      const std::string &name = function.paramNames[i];
      auto is = [&](const char *end) { return name.ends_with(end); };
      (is("experts.gate_up_proj") || is("experts.up_proj") ? gateUp
       : is("experts.down_proj")                           ? down
       : is("mlp.gate.weight") || is("moe.gate.weight") ||
               is("mixer.gate.weight")
           ? router
           : ignored) = function.params[i];
      if (is("experts.up_proj"))
        gates = 1;
      if (is("mixer.gate.weight"))
        module = "mixer";
    }
    return gateUp >= 0 && down >= 0 && router >= 0;
  }

  /// What the router reads and, where experts have a width of their own between
  /// two projections (moe_latent_size), what they read.
  bool readInputs(const std::vector<int> &reads) {
    for (int slot : reads)
      (shapeOf(slot).back() == shapeOf(router).back() ? x : y) = slot;
    if (reads.size() == 1 && x >= 0)
      y = x;
    return x >= 0 && y >= 0 && reads.size() <= 2;
  }

  void readSizes() {
    all = shapeOf(router).front();
    hidden = shapeOf(down)[1];
    tokens = static_cast<int64_t>(plan::elementsOf(shapeOf(y))) / hidden;
    for (const Instruction &instruction : function.instructions)
      if (instruction.op == "aten::topk" && isOfMixture(instruction, module))
        for (int slot : instruction.results) // values that are not read are -1
          if (slot >= 0)
            chosen = shapeOf(slot).back();
    inner = shapeOf(down)[2] * tensor; // import-tp-plan shards it over tp
    rows = tokens * chosen * experts.tensor;
    local = all / experts.ranks;
    once = experts.sendsOnce && experts.ranks > 1;
    width = inner / experts.tensor;
  }

  //===--- What is written ------------------------------------------------===//

  int newSlot(Shape shape, DType dtype) {
    const int slot = static_cast<int>(function.slots.size());
    function.slots.push_back({dtype, std::move(shape), slot});
    return slot;
  }

  /// Parameters, and their gradients among the outputs, as the rank has them.
  void makeParameters() {
    auto change = [&](int slot, Shape shape) {
      const Shape old = shapeOf(slot);
      for (plan::Slot &view : function.slots)
        if (view.base == base(slot) && view.shape == old)
          view.shape = shape;
      for (size_t i = size_t(graph.outputs) + graph.inputGradients;
           i < function.outputs.size(); ++i)
        if (shapeOf(function.outputs[i]) == old)
          return function.outputs[i] =
                     newSlot(shape, function.slots[slot].dtype);
      return -1;
    };
    gateUpGradient = change(gateUp, {local, gates * width, hidden});
    downGradient = change(down, {local, hidden, width});
    routerGradient = change(router, shapeOf(router));
  }

  std::vector<int> make(const char *op, std::vector<int> inputs,
                        std::vector<int> results, double flops = 0) {
    Instruction instruction;
    instruction.op = op;
    instruction.where = where;
    for (int slot : inputs) {
      instruction.args.push_back(plan::tensorArg(slot));
      instruction.movedBytes += bytesOf(slot);
    }
    for (int slot : results)
      instruction.movedBytes += bytesOf(slot);
    instruction.results = results;
    instruction.flops = flops;
    add(std::move(instruction), -1);
    return results;
  }
  double bytesOf(int slot) const {
    return plan::movedBytesOf(function.slots[slot]);
  }
  void add(Instruction instruction, double wait) {
    fresh.push_back(std::move(instruction));
    freshWaits.push_back(wait);
  }

  /// Over the ranks that share experts; `result`: what comes.
  int exchange(int slot, int result) {
    Instruction instruction;
    instruction.op = exchangeOp;
    instruction.where = where;
    instruction.args = {plan::tensorArg(slot)};
    instruction.results = {result};
    double wait = 0;
    if (target) {
      const plan::AxisGroup group = {
          experts.ranks,
          std::clamp<int64_t>(graph.ranksPerNode / experts.tensor, 1,
                              experts.ranks)};
      wait = dispatchSeconds(
          *target, group,
          {static_cast<double>(tokens), static_cast<double>(chosen),
           bytesOf(slot) / static_cast<double>(shapeOf(slot).front()),
           experts.sendsOnce});
    }
    add(std::move(instruction), wait);
    return result;
  }

  int product(int a, int b, Shape shape, DType dtype, double k) {
    const double flops = 2 * plan::elementsOf(shape) * k;
    const int result = newSlot(std::move(shape), dtype);
    return make("aten::mm", {a, b}, {result}, flops).front();
  }
  /// A product for each expert, of `rows` rows.
  int grouped(int a, int b, Shape shape, double flops) {
    const int result = newSlot(std::move(shape), dtype);
    return make("aten::_grouped_mm", {a, b, ends}, {result}, flops).front();
  }
  /// A view of `slot`, which costs nothing.
  int alias(int slot, Shape shape) {
    const int view = newSlot(std::move(shape), function.slots[slot].dtype);
    function.slots[view].base = base(slot);
    Instruction instruction;
    instruction.op = "aten::view";
    instruction.where = where;
    instruction.args = {plan::tensorArg(slot)};
    instruction.results = {view};
    add(std::move(instruction), viewMark);
    return view;
  }

  /// Rows of a rank's own tokens, one for each expert.
  int ownRows() { return newSlot({tokens * chosen, hidden}, dtype); }

  /// `flat` [tokens, hidden] at the experts' ranks, sorted there by expert:
  /// `permute` makes rows of it, and `others`. Sent once, what has come is.
  int dispatch(int flat, const char *permute, int by, std::vector<int> others) {
    int moved = once ? exchange(flat, ownRows()) : flat;
    const int made = ownRows();
    others.insert(others.begin(), made);
    make(permute, {moved, by}, others);
    moved = once || experts.ranks == 1 ? made : exchange(made, ownRows());
    if (experts.tensor > 1) {
      // Ranks that split an expert gather each other's rows.
      const int whole = newSlot({rows, hidden}, dtype);
      moved = make("megatron::gather_rows", {moved}, {whole}).front();
      addTensorWait(moved);
    }
    return once ? moved : sorted(moved);
  }
  /// Back, into `result` [tokens, hidden] by `unpermute`, which reads `with` as
  /// well and makes `others`.
  void combine(int slot, const char *unpermute, std::vector<int> with,
               int result, std::vector<int> others = {}) {
    int moved = once ? slot : sorted(slot);
    if (experts.tensor > 1) {
      moved = make("megatron::scatter_rows", {moved}, {ownRows()}).front();
      addTensorWait(slot);
    }
    if (experts.ranks > 1 && !once)
      moved = exchange(moved, ownRows());
    // Where rows go back as sums, those are written once more there.
    const int summed = once ? ownRows() : result;
    with.insert(with.begin(), moved);
    others.insert(others.begin(), summed);
    make(unpermute, with, others);
    if (once)
      exchange(summed, result);
  }
  void addTensorWait(int whole) {
    if (target)
      freshWaits.back() = collectiveSeconds(
          *target, Collective::AllGather,
          {experts.tensor, std::min(experts.tensor, graph.ranksPerNode)},
          bytesOf(whole));
    fresh.back().movedBytes = 0;
  }
  /// Of several experts of a rank, the rows of other ranks come rank by rank.
  int sorted(int slot) {
    if (local == 1 || experts.ranks == 1)
      return slot;
    const int result = newSlot(shapeOf(slot), dtype);
    return make("megatron::sort_chunks", {slot}, {result}).front();
  }

  void writeForward(int result) {
    where = "*." + module + ".gate";
    const int64_t routed = shapeOf(router).back();
    const int own = alias(x, {tokens, routed});
    const int logits = product(own, router, {tokens, all}, DType::F32,
                               static_cast<double>(routed));
    const int flat = x == y ? own : alias(y, {tokens, hidden});
    const int scores = newSlot({tokens, all}, DType::F32);
    map = newSlot({tokens, all}, DType::U8);
    make("megatron::route", {logits}, {scores, map});
    probabilities = scores;
    where = "*." + module + ".experts";
    ends = newSlot({local}, DType::I32);
    make("megatron::count", {map}, {ends});
    // row_id_map of TransformerEngine's permutation kernels.
    order = newSlot({tokens, 2 * all + 1}, DType::I32);
    const int permuted = newSlot({tokens * chosen}, DType::F32);
    received = dispatch(flat, "megatron::permute", map, {permuted, order});
    factors = newSlot({rows}, DType::F32);
    make("megatron::permute_probabilities", {permuted}, {factors});
    const double work = 2 * static_cast<double>(rows) * hiddenWidth();
    both = grouped(received, weightOf(gateUp), {rows, gates * width},
                   double(gates) * work);
    active = make(activation().c_str(), {both, factors},
                  {newSlot({rows, width}, dtype)})
                 .front();
    fuse();
    int out = grouped(active, weightOf(down), {rows, hidden}, work);
    if (experts.biases && !experts.fused)
      out = addBiases(out);
    combine(out, "megatron::unpermute", {order}, result);
  }
  /// Of up and gate, or of up alone (fused_bias_swiglu.py,
  /// use_fused_weighted_squared_relu).
  std::string activation() const {
    return gates == 2 ? "megatron::weighted_swiglu"
                      : "megatron::weighted_squared_relu";
  }
  double hiddenWidth() const {
    return static_cast<double>(hidden) * static_cast<double>(width);
  }
  /// The factor [E, in, out] of matrices [E, out, in].
  int weightOf(int slot) {
    const Shape shape = shapeOf(slot);
    return alias(slot, {shape[0], shape[2], shape[1]});
  }

  /// `results` are the gradient of the input, or its two parts: of what experts
  /// read, and of what the router reads.
  void writeBackward(int tangent, const std::vector<int> &results) {
    where = "*." + module + ".experts";
    const int flat = alias(tangent, {tokens, hidden});
    const int grad = dispatch(flat, "megatron::unpermute_backward", order, {});
    if (experts.biases && !experts.fused)
      sumBiases(grad);
    const double work = 2 * static_cast<double>(rows) * hiddenWidth();
    const int inside =
        grouped(grad, alias(down, shapeOf(down)), {rows, width}, work);
    weightGradient(grad, active, downGradient, work);
    const int factorGradient = newSlot({rows}, DType::F32);
    const int bothGradient = newSlot({rows, gates * width}, dtype);
    make((activation() + "_backward").c_str(), {inside, both, factors},
         {bothGradient, factorGradient});
    fuse();
    const int rowGradient =
        grouped(bothGradient, alias(gateUp, shapeOf(gateUp)), {rows, hidden},
                double(gates) * work);
    weightGradient(bothGradient, received, gateUpGradient,
                   double(gates) * work);
    const bool apart = results.size() == 2;
    const int summed =
                  apart ? results.front() : newSlot({tokens, hidden}, dtype),
              scoreGradient = newSlot({tokens, all}, DType::F32);
    combine(rowGradient, "megatron::permute_backward", {order, factorGradient},
            summed, {scoreGradient});
    where = "*." + module + ".gate";
    const int64_t routed = shapeOf(router).back();
    const int logitGradient =
        make("megatron::route_backward", {scoreGradient, probabilities, map},
             {newSlot({tokens, all}, DType::F32)})
            .front();
    const int narrow =
        make("megatron::cast", {logitGradient}, {newSlot({tokens, all}, dtype)})
            .front();
    const double k = static_cast<double>(all);
    const double routing =
        2 * static_cast<double>(tokens) * k * static_cast<double>(routed);
    const int viaRouter =
        make("aten::mm", {narrow, router},
             {apart ? results.back() : newSlot({tokens, hidden}, dtype)},
             routing)
            .front();
    if (routerGradient >= 0)
      make("aten::mm",
           {alias(narrow, {all, tokens}), alias(x, {tokens, routed})},
           {routerGradient}, routing);
    if (!apart)
      make("aten::add.Tensor", {summed, viaRouter}, {results.front()});
  }
  void fuse() { // the last one into the product before it
    if (experts.fused)
      fresh.back().movedBytes = 0;
  }

  /// A product in fp32, a sum, all experts' rows in one tensor, and a cast,
  /// each read and written: 28 bytes an element.
  int addBiases(int slot) {
    const int result = make("megatron::expert_bias", {slot, factors},
                            {newSlot({rows, hidden}, dtype)})
                           .front();
    fresh.back().movedBytes = 28 * elementsOf(slot);
    fresh.back().workspaceBytes = static_cast<int64_t>(8 * elementsOf(slot));
    return result;
  }
  /// The tangent in fp32, its products with the bias and with the
  /// probabilities, and their sums; of the first bias the sum over what the
  /// activation gives back: 40 bytes an element and 2 of each of the first's.
  void sumBiases(int tangent) {
    make("megatron::expert_bias_backward", {tangent, factors},
         {newSlot({rows}, DType::F32)});
    fresh.back().movedBytes = 40 * elementsOf(tangent) +
                              2.0 * static_cast<double>(gates * rows * width);
    fresh.back().workspaceBytes = static_cast<int64_t>(8 * elementsOf(tangent));
  }
  double elementsOf(int slot) const { return plan::elementsOf(shapeOf(slot)); }

  void weightGradient(int grad, int input, int result, double flops) {
    if (result < 0)
      return;
    const Shape shape = shapeOf(grad);
    make("aten::_grouped_mm", {alias(grad, {shape[1], shape[0]}), input, ends},
         {result}, flops);
  }

  void write(const MixtureHalf &forward, const MixtureHalf &backward) {
    dtype = function.slots[y].dtype;
    SegmentGraph old = graph.takeInstructions();
    std::vector<Instruction> &list = old.function.instructions;
    auto keep = [&](size_t i) {
      function.instructions.push_back(std::move(list[i]));
      graph.forward.push_back(old.forward[i]);
      graph.view.push_back(old.view[i]);
      graph.node.push_back(old.node[i]);
      if (!old.child.empty())
        graph.child.push_back(old.child[i]);
      graph.pointwiseKeeps.push_back(old.pointwiseKeeps[i]);
      graph.waits.push_back(-1);
    };
    auto put = [&](bool isForward) {
      for (size_t i = 0; i < fresh.size(); ++i) {
        const bool view = freshWaits[i] == viewMark;
        function.instructions.push_back(std::move(fresh[i]));
        graph.forward.push_back(isForward);
        graph.view.push_back(view);
        graph.node.push_back(nextNode--);
        if (!old.child.empty())
          graph.child.push_back(-1);
        graph.pointwiseKeeps.push_back(true);
        graph.waits.push_back(view ? -1 : freshWaits[i]);
      }
      fresh.clear();
      freshWaits.clear();
    };
    // Where the last instruction of each half stood.
    const int endForward =
        forward.inside.empty() ? -1 : *forward.inside.rbegin();
    std::vector<int> gradients; // what experts read, then the router
    for (int input : x == y ? std::vector<int>{y} : std::vector<int>{y, x})
      for (int slot : backward.gives)
        if (elementsOf(slot) == elementsOf(input))
          gradients.push_back(slot);
    int tangent = -1;
    for (int slot : backward.reads)
      if (base(slot) != base(x) && base(slot) != base(y) &&
          elementsOf(slot) == elementsOf(y))
        tangent = slot;
    const int endBackward =
        backward.inside.empty() ? -1 : *backward.inside.rbegin();
    for (size_t i = 0; i < list.size(); ++i) {
      const int position = static_cast<int>(i);
      if (!forward.inside.count(position) && !backward.inside.count(position)) {
        keep(i);
        continue;
      }
      if (position == endForward) {
        writeForward(ownResult(forward.gives.front()));
        put(true);
      }
      if (position == endBackward && !gradients.empty() && tangent >= 0) {
        for (int slot : gradients)
          ownResult(slot);
        writeBackward(tangent, gradients);
        put(false);
      }
    }
  }
  /// What others read of the mixture becomes a storage of its own.
  int ownResult(int slot) {
    const int old = base(slot);
    for (plan::Slot &view : function.slots)
      if (view.base == old)
        view.base = slot;
    return slot;
  }

  static constexpr double viewMark = -2;
  static constexpr const char *exchangeOp = "megatron::all_to_all";

  SegmentGraph &graph;
  plan::Function &function;
  const ExpertRanks experts;
  const Target *target;
  int64_t tensor = 1;
  int gateUp = -1, down = -1, router = -1, ignored = -1; // slots
  int gateUpGradient = -1, downGradient = -1, routerGradient = -1;
  int64_t all = 0, hidden = 0, tokens = 0, chosen = 1, inner = 0;
  int64_t rows = 0, local = 0, width = 0;
  DType dtype = DType::BF16;
  bool once = false;  // ExpertRanks::sendsOnce, among several ranks
  int x = -1, y = -1; // what the router and the experts read
  int64_t gates = 2;  // matrices in front of an expert's activation
  std::string module = "mlp";
  int map = -1, probabilities = -1, order = -1, ends = -1;
  int factors = -1, received = -1, both = -1, active = -1;
  std::string where;
  std::vector<Instruction> fresh;
  std::vector<double> freshWaits;
  int nextNode = -1000000;
};

} // namespace

std::vector<int64_t> ownExperts(std::vector<int64_t> shape, int64_t dim,
                                const ExpertRanks &experts, int64_t tensor) {
  shape[0] /= experts.ranks;
  shape[dim] = shape[dim] * tensor / experts.tensor;
  return shape;
}

std::string useMegatronExperts(SegmentGraph &graph, const ExpertRanks &experts,
                               const Target *target) {
  return Writer(graph, experts, target).run();
}

} // namespace accel
