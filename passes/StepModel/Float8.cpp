//===- Float8.cpp - Linear layers with fp8 operands -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/Float8.h"

#include "passes/Cost/OpCost.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Operands.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel {
namespace {

using plan::Arg;
using plan::DType;
using plan::Instruction;

using Shape = std::vector<int64_t>;

/// A layer's forward matmul and what its derivatives share with it.
struct Product {
  int layer = -1;  // Converter::layers
  int weight = -1; // parameter's slot
  int input = -1;  // storage
  int gradient = -1;
  int inputCopy = -1, weightCopies[2] = {-1, -1}; // of TransformerEngine
  int gradientBits = -1, gradientTransposed = -1; // of the backward
  int heldGradient = -1, heldWeight = -1;         // variables of a frame
};

class Converter {
public:
  Converter(SegmentGraph &graph, const std::vector<int> &parameters,
            const Float8Form &form)
      : graph(graph), function(graph.function), form(form) {
    for (int slot : parameters) {
      Float8Layer layer;
      layer.parameter = slot;
      layers.push_back(layer);
      layerOf[function.slots[slot].base] = static_cast<int>(layers.size()) - 1;
    }
  }

  std::vector<Float8Layer> run() {
    dropCasts();
    findTurned();
    findProducts();
    if (form.gathersInputs)
      findGathers();
    old = graph.takeInstructions();
    std::vector<Instruction> &list = old.function.instructions;
    for (size_t i = 0; i < list.size(); ++i) {
      at = i;
      if (narrowGathers.count(static_cast<int>(i))) {
        gatherBits(std::move(list[i]));
        continue;
      }
      const auto found = roleOf.find(static_cast<int>(i));
      if (found == roleOf.end()) {
        add(std::move(list[i]), old.view[i]);
        continue;
      }
      Product &product = products[found->second.product];
      layers[product.layer].before.push_back(static_cast<int>(i));
      own = &layers[product.layer].after;
      replace(std::move(list[i]), found->second.kind, product);
      own = nullptr;
    }
    dropUnreadViews();
    return std::move(layers);
  }

private:
  enum class Kind { Forward, GradInput, GradWeight };
  struct Role {
    Kind kind;
    int product;
  };

  int base(int slot) const { return function.slots[slot].base; }
  const Shape &shapeOf(int slot) const { return function.slots[slot].shape; }
  double bytesOf(int slot) const {
    return plan::movedBytesOf(function.slots[slot]);
  }
  int layerRead(int slot) const {
    const auto found = layerOf.find(base(slot));
    return found == layerOf.end() ? -1 : found->second;
  }
  static bool adds(const Instruction &instr) {
    return instr.op.find("addmm") != std::string::npos;
  }
  /// The two matrices of a product.
  static std::pair<int, int> operands(const Instruction &instr) {
    std::vector<int> slots;
    for (const Arg &arg : instr.args)
      if (arg.kind == Arg::Kind::Tensor)
        slots.push_back(arg.slot);
    const size_t first = adds(instr) ? 1 : 0;
    return slots.size() < first + 2 ? std::pair(-1, -1)
                                    : std::pair(slots[first], slots[first + 1]);
  }

  /// Both libraries cast the weight itself, so that autocast makes no copy.
  void dropCasts() {
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      Instruction &instr = function.instructions[i];
      if (instr.op != "aten::_to_copy" || graph.view[i] || instr.args.empty() ||
          layerRead(instr.args[0].slot) < 0)
        continue;
      graph.view[i] = true;
      instr.movedBytes = 0;
      const int copy = base(instr.results.front()),
                root = base(instr.args[0].slot);
      for (plan::Slot &slot : function.slots)
        if (slot.base == copy) {
          slot.base = root;
          slot.dtype = function.slots[root].dtype;
        }
    }
  }

  /// Slots that are the transposes of their storages.
  void findTurned() {
    turned.assign(function.slots.size(), false);
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const Instruction &instr = function.instructions[i];
      if (!graph.view[i] || instr.args.empty() || instr.results.empty() ||
          instr.args[0].kind != Arg::Kind::Tensor)
        continue;
      const bool turns =
          instr.op == "aten::t" || instr.op == "aten::transpose.int";
      turned[instr.results[0]] = turned[instr.args[0].slot] != turns;
    }
  }

  /// A view of an input would keep it for the backward.
  void dropUnreadViews() {
    std::vector<bool> read(function.slots.size(), false);
    for (int slot : function.outputs)
      read[slot] = true;
    for (size_t i = function.instructions.size(); i-- > 0;) {
      Instruction &instr = function.instructions[i];
      bool needed = !graph.view[i];
      for (int slot : instr.results)
        needed |= slot >= 0 && read[slot];
      if (!needed) {
        instr.args.clear();
        instr.results.clear();
      }
      for (const Arg &arg : instr.args) {
        if (arg.kind == Arg::Kind::Tensor || arg.kind == Arg::Kind::Wrapped)
          read[arg.slot] = true;
        if (arg.kind == Arg::Kind::Tensors)
          for (int64_t slot : arg.ints)
            if (slot >= 0)
              read[slot] = true;
      }
    }
  }

  void findProducts() {
    const auto &list = function.instructions;
    for (size_t i = 0; i < list.size(); ++i) {
      if (graph.view[i] || opKind(list[i]) != OpKind::Matmul)
        continue;
      const auto [left, right] = operands(list[i]);
      if (left < 0 || layerRead(right) < 0)
        continue;
      const int layer = layerRead(right), position = static_cast<int>(i);
      if (graph.forward[i]) {
        Product product;
        product.layer = layer;
        product.weight = layers[layer].parameter;
        product.input = base(left);
        layers[layer].rows = shapeOf(left).front();
        layers[layer].in = shapeOf(left).back();
        layers[layer].out = shapeOf(right).back();
        roleOf[position] = {Kind::Forward, static_cast<int>(products.size())};
        products.push_back(product);
      } else if (const int of = productOf(layer); of >= 0) {
        products[of].gradient = base(left);
        roleOf[position] = {Kind::GradInput, of};
      }
    }
    for (size_t i = 0; i < list.size(); ++i) {
      if (graph.view[i] || graph.forward[i] ||
          opKind(list[i]) != OpKind::Matmul ||
          roleOf.count(static_cast<int>(i)))
        continue;
      const auto [left, right] = operands(list[i]);
      for (size_t p = 0; left >= 0 && p < products.size(); ++p) {
        const bool straight = base(left) == products[p].gradient &&
                              base(right) == products[p].input,
                   turned = base(right) == products[p].gradient &&
                            base(left) == products[p].input;
        if (straight || turned)
          roleOf[static_cast<int>(i)] = {Kind::GradWeight, static_cast<int>(p)};
      }
    }
  }

  /// The last one of a layer that has no derivative yet.
  int productOf(int layer) const {
    for (size_t p = products.size(); p-- > 0;)
      if (products[p].layer == layer && products[p].gradient < 0)
        return static_cast<int>(p);
    return -1;
  }

  /// Gathers of which products alone read what they give.
  void findGathers() {
    const auto &list = function.instructions;
    std::map<int, int> gatherOf; // by storage
    std::set<int> others;
    for (size_t i = 0; i < list.size(); ++i) {
      const int position = static_cast<int>(i);
      if (list[i].op == "sharding::all_gather") {
        if (const auto exchange = plan::exchangeOf(list[i]);
            exchange && exchange->axes.front() == "tp")
          gatherOf[base(exchange->result)] = position;
      } else if (!graph.view[i] && !roleOf.count(position)) {
        for (const Arg &arg : list[i].args)
          if (arg.kind == Arg::Kind::Tensor)
            others.insert(base(arg.slot));
      }
    }
    for (int slot : function.outputs)
      others.insert(base(slot));
    for (const Product &product : products)
      for (int read : {product.input, product.gradient})
        if (const auto found = gatherOf.find(read);
            found != gatherOf.end() && !others.count(read))
          narrowGathers.insert(found->second);
  }

  /// The rank's part is cast, and 8 bits are gathered.
  void gatherBits(Instruction gather) {
    where = gather.where;
    const int result = gather.results.front();
    gather.args.front().slot = cast(gather.args.front().slot, 1);
    for (plan::Slot &slot : function.slots)
      if (slot.base == base(result))
        slot.dtype = DType::U8;
    add(std::move(gather), /*view=*/false);
    gatheredBits.insert(base(result));
  }

  void add(Instruction instr, bool view) {
    if (own)
      own->push_back(static_cast<int>(function.instructions.size()));
    function.instructions.push_back(std::move(instr));
    graph.forward.push_back(old.forward[at]);
    graph.view.push_back(view);
    graph.node.push_back(old.node[at]);
    if (!old.child.empty())
      graph.child.push_back(old.child[at]);
    const bool product = opKind(function.instructions.back()) == OpKind::Matmul;
    graph.pointwiseKeeps.push_back(own ? product && old.pointwiseKeeps[at]
                                       : old.pointwiseKeeps[at]);
  }

  int newSlot(Shape shape, DType dtype) {
    const int slot = static_cast<int>(function.slots.size());
    function.slots.push_back({dtype, std::move(shape), slot});
    return slot;
  }
  /// The storage of `slot` in another shape.
  int alias(int slot, const Shape &shape) {
    if (shapeOf(slot) == shape)
      return slot;
    Instruction view;
    view.op = "aten::view";
    view.where = where;
    view.args = {plan::tensorArg(slot)};
    const int result = newSlot(shape, function.slots[slot].dtype);
    function.slots[result].base = base(slot);
    view.results = {result};
    add(std::move(view), /*view=*/true);
    return result;
  }

  /// An operator that reads `inputs` and makes one tensor.
  int make(const char *op, const std::vector<int> &inputs, Shape shape,
           DType dtype) {
    Instruction instr;
    instr.op = op;
    instr.where = where;
    const int result = newSlot(std::move(shape), dtype);
    for (int slot : inputs) {
      instr.args.push_back(plan::tensorArg(slot));
      instr.movedBytes += bytesOf(slot);
    }
    instr.movedBytes += bytesOf(result);
    instr.results = {result};
    add(std::move(instr), /*view=*/false);
    return result;
  }

  /// hp_tensor_to_float8_dynamic; `dim` is that of the scales, where each row
  /// or column has one.
  int cast(int slot, size_t dim) {
    const bool rows = form.rowwise && !castsWhole;
    // By the storage's dimension.
    const size_t axis = turned[slot] ? 1 - dim : dim;
    const int way = rows ? static_cast<int>(axis) : -1;
    if (gatheredBits.count(base(slot)))
      return slot;
    if (form.compiled)
      if (auto known = bits.find({base(slot), way}); known != bits.end())
        return alias(known->second, shapeOf(slot));
    const Shape shape = shapeOf(slot);
    Shape scales;
    if (rows) {
      scales = shape;
      scales[dim] = 1;
    }
    int scale = make("aten::abs", {slot}, shape, function.slots[slot].dtype);
    scale = make("aten::amax", {scale}, scales, function.slots[slot].dtype);
    if (rows)
      function.instructions.back().args.push_back(number(way));
    else if (form.gathersInputs)
      scale = largestOfRanks(scale);
    scale = make("aten::_to_copy", {scale}, scales, DType::F64);
    scale = make("aten::clamp", {scale}, scales, DType::F64);
    scale = make("aten::reciprocal", {scale}, scales, DType::F64);
    scale = make("aten::_to_copy", {scale}, scales, DType::F32);
    if (form.rowwise)
      for (const char *op : {"aten::log2", "aten::floor", "aten::exp2"})
        scale = make(op, {scale}, scales, DType::F32);
    int wide = slot; // registers of a compiled kernel
    if (function.slots[slot].dtype != DType::F32 && !form.compiled)
      wide = make("aten::to", {slot}, shape, DType::F32); // not autocast's
    const int scaled =
        make("aten::mul.Tensor", {wide, scale}, shape, DType::F32);
    const int clamped = make("aten::clamp", {scaled}, shape, DType::F32);
    const int result = make("aten::_to_copy", {clamped}, shape, DType::U8);
    // The caller's variable.
    if (!form.compiled)
      function.instructions.back().args.push_back(plan::tensorArg(scaled));
    bits[{base(slot), way}] = result;
    return result;
  }

  static Arg number(int64_t value) {
    Arg arg;
    arg.kind = Arg::Kind::Int;
    arg.intValue = value;
    return arg;
  }
  /// DTensor's maximum of a tensor that ranks of tp share.
  int largestOfRanks(int slot) {
    Instruction reduce;
    reduce.op = "sharding::all_reduce";
    reduce.where = where;
    Arg axis;
    axis.kind = Arg::Kind::Text;
    axis.text = "tp";
    const int result = newSlot(shapeOf(slot), function.slots[slot].dtype);
    reduce.args = {plan::tensorArg(slot), number(/*max=*/1), axis};
    reduce.results = {result};
    add(std::move(reduce), /*view=*/false);
    return result;
  }

  /// The right operand of a product lies by columns, the left one by rows.
  int relaid(int slot) {
    return make("aten::clone", {slot}, shapeOf(slot), DType::U8);
  }

  /// Cast and transposed by one kernel (nvte_cast_transpose).
  std::pair<int, int> castBoth(int slot) {
    Instruction instr;
    instr.op = "te::cast_transpose";
    instr.where = where;
    instr.args = {plan::tensorArg(slot)};
    const Shape shape = shapeOf(slot);
    const int straight = newSlot(shape, DType::U8),
              turned = newSlot(shape, DType::U8);
    instr.results = {straight, turned};
    instr.movedBytes = bytesOf(slot) + 2 * bytesOf(straight);
    add(std::move(instr), /*view=*/false);
    return {straight, turned};
  }
  int castOnce(int slot) {
    return make("te::cast", {slot}, shapeOf(slot), DType::U8);
  }

  /// `instr` as a product of 8-bit operands. Of torchao a bias is added
  /// afterwards.
  void multiply(Instruction instr, int left, int right,
                const std::vector<int> &held, bool scalesAfter = false) {
    const auto [wideLeft, wideRight] = operands(instr);
    const int result = instr.results.front();
    const int bias = adds(instr) ? instr.args.front().slot : -1;
    Instruction product = instr;
    product.op = "aten::_scaled_mm";
    product.args = {plan::tensorArg(alias(left, shapeOf(wideLeft))),
                    plan::tensorArg(alias(right, shapeOf(wideRight)))};
    const bool after = bias >= 0 && !form.transformerEngine;
    if (bias >= 0 && !after)
      product.args.push_back(plan::tensorArg(bias));
    for (int slot : held)
      product.args.push_back(plan::tensorArg(slot));
    if (after || scalesAfter)
      product.results = {
          newSlot(shapeOf(result), function.slots[result].dtype)};
    product.movedBytes = plan::elementsOf(shapeOf(wideLeft)) +
                         plan::elementsOf(shapeOf(wideRight)) + bytesOf(result);
    const int sum = product.results.front();
    add(std::move(product), /*view=*/false);
    if (scalesAfter)
      return scale(sum, result);
    if (!after)
      return;
    Instruction plus;
    plus.op = "aten::add.Tensor";
    plus.where = where;
    plus.args = {plan::tensorArg(sum), plan::tensorArg(bias)};
    plus.results = {result};
    plus.movedBytes = 2 * bytesOf(result) + bytesOf(bias);
    add(std::move(plus), /*view=*/false);
  }

  /// addmm_float8_unwrapped: CUTLASS's kernel with a scale for each row is slow
  /// without fast accumulation, which only the forward has, so that cuBLAS's
  /// multiplies and the scales are applied to what it gives.
  void scale(int product, int result) {
    Instruction times;
    times.op = "aten::mul.Tensor";
    times.where = where;
    times.args = {plan::tensorArg(product)};
    times.results = {result};
    times.movedBytes = 2 * bytesOf(result);
    if (!form.compiled) { // the product of the scales is a matrix
      const int scales =
          make("aten::mul.Tensor", {}, shapeOf(result), DType::F32);
      times.args.push_back(plan::tensorArg(scales));
      times.movedBytes += bytesOf(scales);
    }
    add(std::move(times), /*view=*/false);
  }

  void replace(Instruction instr, Kind kind, Product &product) {
    where = instr.where;
    if (form.transformerEngine)
      useTransformerEngine(std::move(instr), kind, product);
    else
      useTorchao(std::move(instr), kind, product);
  }

  void useTorchao(Instruction instr, Kind kind, Product &product) {
    const auto [left, right] = operands(instr);
    switch (kind) {
    case Kind::Forward: {
      const int x = cast(left, 1);
      const int w = form.gathered ? right : cast(right, 0);
      return multiply(std::move(instr), x, w, {});
    }
    case Kind::GradInput: {
      const int grad = cast(left, 1);
      int w = right;
      if (!form.gathered) {
        castsWhole = form.wideGradWeight; // its scale is the tensor's
        w = cast(right, 0);
        castsWhole = false;
      }
      product.heldGradient = grad;
      product.heldWeight = form.gathered ? -1 : w;
      return multiply(std::move(instr), grad, relaid(w), {}, form.rowwise);
    }
    case Kind::GradWeight: {
      std::vector<int> held;
      if (!form.compiled)
        for (int slot : {product.heldGradient, product.heldWeight})
          if (slot >= 0)
            held.push_back(slot);
      if (form.wideGradWeight) {
        for (int slot : held)
          instr.args.push_back(plan::tensorArg(slot));
        return add(std::move(instr), /*view=*/false);
      }
      const int a = cast(left, 1), b = cast(right, 0);
      return multiply(std::move(instr), relaid(a), relaid(b), held,
                      form.rowwise);
    }
    }
  }

  void useTransformerEngine(Instruction instr, Kind kind, Product &product) {
    const auto [left, right] = operands(instr);
    switch (kind) {
    case Kind::Forward: {
      const auto [x, turned] = castBoth(left);
      product.inputCopy = turned;
      if (form.dropsWeights)
        return multiply(std::move(instr), x, castOnce(right), {});
      const auto [w, turnedWeight] = castBoth(right);
      product.weightCopies[0] = w;
      product.weightCopies[1] = turnedWeight;
      return multiply(std::move(instr), x, w, {});
    }
    case Kind::GradInput: {
      castGradient(left, product);
      std::vector<int> held;
      if (form.dropsWeights) {
        std::tie(product.weightCopies[0], product.weightCopies[1]) =
            castBoth(right);
      }
      held.push_back(product.weightCopies[0]);
      return multiply(std::move(instr), product.gradientBits,
                      product.weightCopies[1], held);
    }
    case Kind::GradWeight: {
      const bool straight = base(left) == product.gradient;
      castGradient(straight ? left : right, product);
      const int grad = product.gradientTransposed, x = product.inputCopy;
      return multiply(std::move(instr), straight ? grad : x,
                      straight ? x : grad, {});
    }
    }
  }
  /// Once for both products.
  void castGradient(int slot, Product &product) {
    if (product.gradientBits < 0)
      std::tie(product.gradientBits, product.gradientTransposed) =
          castBoth(slot);
  }

  SegmentGraph &graph;
  plan::Function &function;
  const Float8Form form;
  SegmentGraph old; // its marks
  std::vector<Float8Layer> layers;
  std::vector<Product> products;
  std::map<int, int> layerOf;              // by storage
  std::map<int, Role> roleOf;              // by instruction
  std::map<std::pair<int, int>, int> bits; // by storage and dimension
  std::vector<bool> turned;                // by slot of the old list
  std::set<int> narrowGathers;             // instructions
  std::set<int> gatheredBits;              // storages
  std::vector<int> *own = nullptr; // where the layer's instructions are noted
  std::string where;
  size_t at = 0;
  bool castsWhole = false;
};

} // namespace

std::vector<Float8Layer> useFloat8(SegmentGraph &graph,
                                   const std::vector<int> &parameters,
                                   const Float8Form &form) {
  return Converter(graph, parameters, form).run();
}

} // namespace accel
