//===- CompiledForm.cpp - A segment as Inductor's partitioner sees it -----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/CompiledForm.h"

#include "passes/StepModel/SegmentOrder.h"
#include "runtime/plan/Operands.h"

#include <map>
#include <tuple>

namespace accel {

using plan::Arg;
using plan::DType;
using plan::Instruction;

namespace {

using Shape = std::vector<int64_t>;

class Decomposer {
public:
  explicit Decomposer(const SegmentGraph &graph) : graph(graph), made(graph) {
    made.function.instructions.clear();
    made.forward.clear();
    made.view.clear();
    made.node.clear();
    made.child.clear();
    made.pointwiseKeeps.clear();
    for (size_t s = 0; s < graph.function.slots.size(); ++s)
      stands.push_back(static_cast<int>(s));
  }

  SegmentGraph run() {
    const auto &list = graph.function.instructions;
    for (size_t i = 0; i < list.size(); ++i) {
      forward = graph.forward[i];
      where = list[i].where;
      Instruction instr = list[i];
      rename(instr);
      if (!decompose(instr))
        copy(std::move(instr), graph.view[i]);
    }
    for (int &slot : made.function.outputs)
      slot = stands[slot];
    dropUnread();
    return std::move(made);
  }

private:
  const Shape &shapeOf(int slot) const {
    return made.function.slots[slot].shape;
  }
  DType typeOf(int slot) const { return made.function.slots[slot].dtype; }
  static bool isNarrow(DType type) {
    return type == DType::BF16 || type == DType::F16;
  }
  double bytesOf(int slot) const {
    return plan::movedBytesOf(made.function.slots[slot]);
  }

  /// Operands by what stands for them; a view follows its base.
  void rename(Instruction &instr) {
    for (Arg &arg : instr.args) {
      if (arg.kind == Arg::Kind::Tensor || arg.kind == Arg::Kind::Wrapped)
        arg.slot = stands[arg.slot];
      if (arg.kind == Arg::Kind::Tensors)
        for (int64_t &slot : arg.ints)
          if (slot >= 0)
            slot = stands[slot];
    }
  }

  void copy(Instruction instr, bool view) {
    if (view && !instr.args.empty() && instr.args[0].kind == Arg::Kind::Tensor)
      for (int slot : instr.results)
        if (slot >= 0)
          made.function.slots[slot].base =
              made.function.slots[instr.args[0].slot].base;
    if (instr.op == "aten::_to_copy" && instr.results.size() == 1) {
      const int from = instr.args[0].slot;
      const Key key = {
          "aten::_to_copy", {from}, shapeOf(from), typeOf(instr.results[0])};
      auto [at, first] = known.try_emplace(key, instr.results[0]);
      if (!first) {
        stands[instr.results[0]] = at->second;
        return;
      }
    }
    add(std::move(instr), view);
  }

  void add(Instruction instr, bool view) {
    made.function.instructions.push_back(std::move(instr));
    made.forward.push_back(forward);
    made.view.push_back(view);
  }

  using Key = std::tuple<std::string, std::vector<int>, Shape, DType>;

  /// One operator of `inputs`; `tag` tells apart what differs in its scalars.
  int make(const std::string &op, std::vector<int> inputs, Shape shape,
           DType type, const char *tag = "") {
    auto [at, first] = known.try_emplace({op + tag, inputs, shape, type}, -1);
    if (!first)
      return at->second;
    const int slot = static_cast<int>(made.function.slots.size());
    plan::Slot value;
    value.dtype = type;
    value.shape = std::move(shape);
    value.base = slot;
    made.function.slots.push_back(std::move(value));
    at->second = slot;
    Instruction instr;
    instr.op = op;
    instr.where = where;
    instr.results = {slot};
    instr.movedBytes = bytesOf(slot);
    for (int input : inputs) {
      instr.args.push_back(plan::tensorArg(input));
      instr.movedBytes += bytesOf(input);
    }
    add(std::move(instr), /*view=*/false);
    return slot;
  }
  int like(const std::string &op, std::vector<int> inputs,
           const char *tag = "") {
    size_t widest = 0;
    for (size_t i = 1; i < inputs.size(); ++i)
      if (bytesOf(inputs[i]) > bytesOf(inputs[widest]))
        widest = i;
    Shape shape = shapeOf(inputs[widest]);
    const DType type = typeOf(inputs[widest]);
    return make(op, std::move(inputs), std::move(shape), type, tag);
  }
  /// A sum, a maximum or a variance over the last `dims` dimensions, kept.
  int reduce(const std::string &op, int input, size_t dims) {
    Shape shape = shapeOf(input);
    for (size_t i = shape.size() - dims; i < shape.size(); ++i)
      shape[i] = 1;
    return make(op, {input}, std::move(shape), typeOf(input));
  }
  /// A sum over all but the last `dims` dimensions.
  int reduceRows(int input, size_t dims) {
    const Shape &shape = shapeOf(input);
    return make(
        "aten::sum.dim_IntList", {input},
        Shape(shape.end() - static_cast<std::ptrdiff_t>(dims), shape.end()),
        typeOf(input), " rows");
  }
  int cast(int slot, DType type) {
    return typeOf(slot) == type
               ? slot
               : make("aten::_to_copy", {slot}, shapeOf(slot), type);
  }
  int wide(int slot) {
    return isNarrow(typeOf(slot)) ? cast(slot, DType::F32) : slot;
  }
  /// `value` takes the place of an operator's result.
  void finish(int result, int value) {
    if (result >= 0)
      stands[result] = cast(value, typeOf(result));
  }

  bool decompose(const Instruction &instr) {
    using Rule = void (Decomposer::*)(const Instruction &);
    static const std::map<std::string, Rule> rules = {
        {"aten::silu", &Decomposer::silu},
        {"aten::silu_backward", &Decomposer::siluBackward},
        {"aten::gelu", &Decomposer::gelu},
        {"aten::gelu_backward", &Decomposer::geluBackward},
        {"aten::tanh_backward", &Decomposer::tanhBackward},
        {"aten::sigmoid_backward", &Decomposer::tanhBackward},
        {"aten::native_layer_norm", &Decomposer::layerNorm},
        {"aten::native_layer_norm_backward", &Decomposer::layerNormBackward},
        {"aten::native_dropout", &Decomposer::dropout},
        {"aten::_softmax", &Decomposer::softmax},
        {"aten::_softmax_backward_data", &Decomposer::softmaxBackward},
        {"aten::_log_softmax", &Decomposer::softmax},
        {"aten::_log_softmax_backward_data", &Decomposer::softmaxBackward},
        {"aten::nll_loss_forward", &Decomposer::nllLoss},
        {"aten::nll_loss_backward", &Decomposer::nllLossBackward},
    };
    auto rule = rules.find(instr.op);
    if (rule == rules.end())
      return false;
    (this->*rule->second)(instr);
    return true;
  }

  static int arg(const Instruction &instr, size_t i) {
    return i < instr.args.size() && instr.args[i].kind == Arg::Kind::Tensor
               ? instr.args[i].slot
               : -1;
  }

  void silu(const Instruction &instr) {
    const int x = wide(arg(instr, 0));
    const int below = like("aten::add.Tensor",
                           {like("aten::exp", {like("aten::neg", {x})})}, " 1");
    finish(instr.results[0], like("aten::div.Tensor", {x, below}));
  }
  void siluBackward(const Instruction &instr) {
    const int grad = wide(arg(instr, 0)), x = wide(arg(instr, 1));
    const int gate = like("aten::sigmoid", {x});
    const int left = like("aten::mul.Tensor", {grad, gate});
    const int right = like(
        "aten::add.Tensor",
        {like("aten::mul.Tensor", {x, like("aten::sub.Tensor", {gate}, " 1")})},
        " 1");
    finish(instr.results[0], like("aten::mul.Tensor", {left, right}));
  }
  static bool isTanh(const Instruction &instr) {
    for (const Arg &arg : instr.args)
      if (arg.kind == Arg::Kind::Text && arg.text == "tanh")
        return true;
    return false;
  }
  /// x / 2 times one more than `inner` of x.
  int geluInner(int x, bool tanh) {
    if (!tanh)
      return like("aten::erf", {like("aten::mul.Scalar", {x}, " root")});
    const int square = like("aten::mul.Tensor", {x, x});
    const int cube = like("aten::mul.Tensor", {square, x});
    const int sum = like("aten::add.Tensor",
                         {x, like("aten::mul.Scalar", {cube}, " cube")});
    return like("aten::tanh", {like("aten::mul.Scalar", {sum}, " beta")});
  }
  void gelu(const Instruction &instr) {
    const int x = wide(arg(instr, 0));
    const int half = like("aten::mul.Scalar", {x}, " half");
    const int more =
        like("aten::add.Tensor", {geluInner(x, isTanh(instr))}, " 1");
    finish(instr.results[0], like("aten::mul.Tensor", {half, more}));
  }
  void geluBackward(const Instruction &instr) {
    const int grad = wide(arg(instr, 0)), x = wide(arg(instr, 1));
    const bool tanh = isTanh(instr);
    const int inner = geluInner(x, tanh);
    const int left = like("aten::mul.Scalar",
                          {like("aten::add.Tensor", {inner}, " 1")}, " half");
    const int square = like("aten::mul.Tensor", {x, x});
    const int slope =
        tanh ? like("aten::sub.Tensor",
                    {like("aten::mul.Tensor", {inner, inner})}, " 1")
             : like("aten::exp", {like("aten::mul.Scalar", {square}, " exp")});
    const int right = like("aten::mul.Tensor", {x, slope});
    const int sum = like("aten::add.Tensor", {left, right});
    finish(instr.results[0], like("aten::mul.Tensor", {grad, sum}));
  }
  void tanhBackward(const Instruction &instr) {
    const int grad = arg(instr, 0), y = arg(instr, 1);
    const int slope =
        like("aten::sub.Tensor", {like("aten::mul.Tensor", {y, y})}, " 1");
    finish(instr.results[0], like("aten::mul.Tensor", {grad, slope}));
  }

  /// Dimensions that a norm is over: those of its weight, else the last.
  size_t normDims(int weight) const {
    return weight >= 0 ? shapeOf(weight).size() : 1;
  }
  void layerNorm(const Instruction &instr) {
    const int x = wide(arg(instr, 0));
    int weight = -1, bias = -1;
    for (size_t i = 1; i < instr.args.size(); ++i)
      if (const int slot = arg(instr, i); slot >= 0)
        (weight < 0 ? weight : bias) = slot;
    const size_t dims = normDims(weight);
    const int variance = reduce("aten::var_mean.correction", x, dims);
    const int mean = make("aten::getitem", {variance}, shapeOf(variance),
                          typeOf(variance), " 1");
    const int root =
        like("aten::rsqrt", {like("aten::add.Tensor", {variance}, " eps")});
    int y = normalized(x, mean, root);
    if (weight >= 0)
      y = like("aten::mul.Tensor", {y, weight});
    if (bias >= 0)
      y = like("aten::add.Tensor", {y, bias});
    finish(instr.results[0], y);
    for (size_t i = 1; i < instr.results.size(); ++i)
      if (instr.results[i] >= 0)
        stands[instr.results[i]] = i == 1 ? mean : root;
  }
  int normalized(int x, int mean, int root) {
    return like("aten::mul.Tensor",
                {like("aten::sub.Tensor", {x, mean}), root});
  }
  void layerNormBackward(const Instruction &instr) {
    const int grad = wide(arg(instr, 0)), x = wide(arg(instr, 1));
    std::vector<int> rest; // mean, root, weight, bias
    for (size_t i = 2; i < instr.args.size(); ++i)
      if (const int slot = arg(instr, i); slot >= 0)
        rest.push_back(slot);
    const int weight = rest.size() > 2 ? rest[2] : -1;
    const size_t dims = normDims(weight);
    const int y = normalized(x, rest[0], rest[1]);
    if (instr.results[0] >= 0) {
      const int scaled =
          weight < 0 ? grad : like("aten::mul.Tensor", {grad, wide(weight)});
      const int sum = reduce("aten::sum.dim_IntList", scaled, dims);
      const int both = reduce("aten::sum.dim_IntList",
                              like("aten::mul.Tensor", {scaled, y}), dims);
      const int less = like("aten::sub.Tensor",
                            {like("aten::mul.Scalar", {scaled}, " n"), sum});
      const int rest2 =
          like("aten::sub.Tensor", {less, like("aten::mul.Tensor", {y, both})});
      finish(instr.results[0],
             like("aten::mul.Tensor",
                  {like("aten::div.Scalar", {rest[1]}, " n"), rest2}));
    }
    if (instr.results.size() > 1 && instr.results[1] >= 0)
      finish(instr.results[1],
             reduceRows(like("aten::mul.Tensor", {grad, y}), dims));
    if (instr.results.size() > 2 && instr.results[2] >= 0)
      finish(instr.results[2], reduceRows(grad, dims));
  }

  void dropout(const Instruction &instr) {
    const int x = arg(instr, 0);
    const std::string own = " " + std::to_string(instr.results[0]);
    const int draw =
        make("aten::rand", {}, shapeOf(x), DType::F32, own.c_str());
    const int mask = make("aten::gt.Scalar", {draw}, shapeOf(x), DType::I1);
    if (instr.results.size() > 1 && instr.results[1] >= 0)
      stands[instr.results[1]] = mask;
    finish(instr.results[0],
           like("aten::mul.Scalar", {like("aten::mul.Tensor", {x, mask})},
                " scale"));
  }

  void softmax(const Instruction &instr) {
    const int x = wide(arg(instr, 0));
    const int shifted =
        like("aten::sub.Tensor", {x, reduce("aten::amax", x, 1)});
    const int power = like("aten::exp", {shifted});
    const int sum = reduce("aten::sum.dim_IntList", power, 1);
    finish(instr.results[0],
           instr.op == "aten::_softmax"
               ? like("aten::div.Tensor", {power, sum})
               : like("aten::sub.Tensor", {shifted, like("aten::log", {sum})}));
  }
  void softmaxBackward(const Instruction &instr) {
    const int grad = wide(arg(instr, 0)), y = wide(arg(instr, 1));
    const bool plain = instr.op == "aten::_softmax_backward_data";
    const int weighted = plain ? like("aten::mul.Tensor", {grad, y}) : grad;
    const int scale = plain ? y : like("aten::exp", {y});
    const int product =
        like("aten::mul.Tensor",
             {scale, reduce("aten::sum.dim_IntList", weighted, 1)});
    finish(instr.results[0], like("aten::sub.Tensor", {weighted, product}));
  }

  void nllLoss(const Instruction &instr) {
    const int scores = arg(instr, 0), target = arg(instr, 1);
    const Shape rows = shapeOf(target);
    const int valid = make("aten::ne.Scalar", {target}, rows, DType::I1);
    const int index =
        make("aten::where.self", {valid, target}, rows, DType::I64);
    const int picked =
        make("aten::gather", {scores, index}, rows, typeOf(scores));
    const int own =
        make("aten::where.self", {valid, like("aten::neg", {picked})}, rows,
             typeOf(scores));
    const int count =
        cast(make("aten::sum", {valid}, {}, DType::I64), typeOf(scores));
    const int sum = make("aten::sum", {own}, {}, typeOf(scores));
    finish(instr.results[0],
           make("aten::div.Tensor", {sum, count}, {}, typeOf(scores)));
    if (instr.results.size() > 1 && instr.results[1] >= 0)
      stands[instr.results[1]] = count;
  }
  void nllLossBackward(const Instruction &instr) {
    const int grad = arg(instr, 0), scores = arg(instr, 1);
    const int target = arg(instr, 2);
    int count = -1;
    for (size_t i = 3; i < instr.args.size(); ++i)
      if (arg(instr, i) >= 0)
        count = arg(instr, i);
    const Shape rows = shapeOf(target);
    const DType type = typeOf(scores);
    const int part = count < 0 ? grad
                               : make("aten::div.Tensor", {grad, count},
                                      shapeOf(grad), type);
    const int valid = make("aten::ne.Scalar", {target}, rows, DType::I1);
    const int index =
        make("aten::where.self", {valid, target}, rows, DType::I64);
    // Inductor writes the scatter of one value as a comparison of indices.
    const int ones =
        make("aten::where.self", {index}, shapeOf(scores), type, " scatter");
    const int weight = make("aten::where.self", {valid, part}, rows, type);
    finish(instr.results[0],
           make("aten::mul.Tensor", {ones, weight}, shapeOf(scores), type));
  }

  /// Instructions that lead to no output.
  void dropUnread() {
    plan::Function &function = made.function;
    std::vector<bool> read(function.slots.size(), false);
    for (int slot : function.outputs)
      read[slot] = true;
    std::vector<bool> keep(function.instructions.size(), false);
    for (size_t i = keep.size(); i-- > 0;) {
      for (int slot : function.instructions[i].results)
        keep[i] = keep[i] || (slot >= 0 && read[slot]);
      if (keep[i])
        forEachSlot(function.instructions[i],
                    [&](int slot) { read[slot] = true; });
    }
    size_t to = 0;
    for (size_t i = 0; i < keep.size(); ++i) {
      if (!keep[i])
        continue;
      if (to != i) {
        function.instructions[to] = std::move(function.instructions[i]);
        made.forward[to] = made.forward[i];
        made.view[to] = made.view[i];
      }
      ++to;
    }
    function.instructions.resize(to);
    made.forward.resize(to);
    made.view.resize(to);
  }

  const SegmentGraph &graph;
  SegmentGraph made;
  std::vector<int> stands; // by slot of `graph`
  std::map<Key, int> known;
  bool forward = true;
  std::string where;
};

} // namespace

SegmentGraph compiledForm(const SegmentGraph &graph) {
  return Decomposer(graph).run();
}

} // namespace accel
