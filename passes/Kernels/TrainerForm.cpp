//===- TrainerForm.cpp - Functions as a trainer's models compute ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/TrainerForm.h"

#include "dialects/Aten/Fused.h"
#include "dialects/Aten/Types.h"
#include "passes/Kernels/SelectAttention.h"

using namespace mlir;
using namespace accel;
using accel::aten::tensorType;
using accel::frameworks::LossKernel;
using accel::frameworks::NormKernel;
using accel::frameworks::RotaryKernel;

namespace {

class TrainerForm {
public:
  TrainerForm(func::FuncOp function, const frameworks::Kernels &kernels)
      : function(function), kernels(kernels) {}

  void run() {
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front())
      ops.push_back(&op);
    for (Operation *op : ops) {
      if (auto norm = dyn_cast<aten::RmsNormOp>(op))
        writeNorm(norm);
      else if (auto attention = dyn_cast<aten::ScaledDotProductAttentionOp>(op))
        writeAttention(attention);
      else if (auto sum = dyn_cast<aten::AddTensorOp>(op))
        writeRotary(sum);
      else if (auto product = dyn_cast<aten::MulTensorOp>(op))
        writeSwiglu(product);
      else if (auto loss = dyn_cast<aten::NllLossForwardOp>(op))
        writeLoss(loss);
    }
    // What was replaced has no reader left.
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty() && isMemoryEffectFree(op) &&
          !op->hasTrait<OpTrait::IsTerminator>())
        op->erase();
  }

private:
  template <typename OpT, typename... Args>
  Value make(Operation *before, Args &&...args) {
    OpBuilder b(before);
    return OpT::create(b, before->getLoc(), std::forward<Args>(args)...)
        ->getResult(0);
  }

  void writeNorm(aten::RmsNormOp op) {
    if (kernels.norm == NormKernel::WrittenWide)
      op.setWide(true);
    RankedTensorType weight = tensorType(op.getWeight());
    // 1 + weight is no operand of torch's kernel.
    if (kernels.norm != NormKernel::Fused || op.getShifted() ||
        tensorType(op.getSelf()).getElementType() != weight.getElementType())
      return;
    op.getResult().replaceAllUsesWith(make<aten::FusedRmsNormOp>(
        op, op.getSelf(), op.getWeight(), weight.getShape(), op.getEps()));
  }

  /// x * cos + rotate_half(x) * sin.
  void writeRotary(aten::AddTensorOp sum) {
    if (kernels.rotary == RotaryKernel::Halves)
      return;
    auto direct = sum.getSelf().getDefiningOp<aten::MulTensorOp>();
    auto crossed = sum.getOther().getDefiningOp<aten::MulTensorOp>();
    auto turned = crossed ? crossed.getSelf().getDefiningOp<aten::CatOp>()
                          : aten::CatOp();
    if (!direct || !turned || turned.getTensors().size() != 2)
      return;
    auto negated = turned.getTensors()[0].getDefiningOp<aten::NegOp>();
    auto second = negated
                      ? negated.getSelf().getDefiningOp<aten::SliceTensorOp>()
                      : aten::SliceTensorOp();
    auto first = turned.getTensors()[1].getDefiningOp<aten::SliceTensorOp>();
    Value x = direct.getSelf();
    if (!first || !second || first.getSelf() != x || second.getSelf() != x)
      return;
    Type own = tensorType(x).getElementType();
    const bool wide = kernels.rotary == RotaryKernel::Complex && !own.isF32();
    Type f32 = Float32Type::get(sum.getContext());
    Value value = wide ? make<aten::ToCopyOp>(sum, x, f32) : x;
    value = make<aten::RotaryOp>(sum, value, direct.getOther(),
                                 crossed.getOther(), false);
    if (wide)
      value = make<aten::ToCopyOp>(sum, value, own);
    replaceNarrower(sum, value);
  }

  /// A kernel that writes what it turns in the dtype of its operand, where the
  /// sum of products with wide tables is wide (autocast): who reads the sum in
  /// the operand's dtype reads the kernel's result.
  void replaceNarrower(aten::AddTensorOp sum, Value value) {
    const Type own = tensorType(value).getElementType();
    if (sum.getResult().getType() != value.getType()) {
      bool isReadWide = false;
      for (Operation *user : sum.getResult().getUsers())
        if (auto copy = dyn_cast<aten::ToCopyOp>(user);
            copy && tensorType(copy.getResult()).getElementType() == own)
          copy.getResult().replaceAllUsesWith(value);
        else
          isReadWide = true;
      if (!isReadWide)
        return;
      value = make<aten::ToCopyOp>(
          sum, value, tensorType(sum.getResult()).getElementType());
    }
    sum.getResult().replaceAllUsesWith(value);
  }

  void writeAttention(aten::ScaledDotProductAttentionOp op) {
    if (kernels.repeatsKeys)
      repeatKeys(op);
    if (kernels.attention != frameworks::AttentionKernel::FusedSoftmax)
      return;
    OpBuilder b(op);
    op.getResult().replaceAllUsesWith(attentionByFusedSoftmax(b, op));
  }

  /// The models' repeat_kv.
  void repeatKeys(aten::ScaledDotProductAttentionOp op) {
    const int64_t heads = tensorType(op.getQuery()).getDimSize(1);
    for (OpOperand *operand : {&op.getKeyMutable(), &op.getValueMutable()}) {
      ArrayRef<int64_t> shape = tensorType(operand->get()).getShape();
      const int64_t groups = shape[1];
      if (groups == heads)
        continue;
      Value value = make<aten::UnsqueezeOp>(op, operand->get(), uint64_t(2));
      value = make<aten::ExpandOp>(op, value,
                                   ArrayRef<int64_t>{shape[0], groups,
                                                     heads / groups, shape[2],
                                                     shape[3]});
      value = make<aten::CloneOp>(op, value);
      operand->set(make<aten::ViewOp>(
          op, value, ArrayRef<int64_t>{shape[0], heads, shape[2], shape[3]}));
    }
  }

  void writeSwiglu(aten::MulTensorOp product) {
    if (!kernels.compiled && !kernels.fusedGate)
      return;
    auto gate = product.getSelf().getDefiningOp<aten::SiluOp>();
    if (gate && gate.getSelf().getType() == product.getOther().getType())
      product.getResult().replaceAllUsesWith(
          make<aten::SwigluOp>(product, gate.getSelf(), product.getOther()));
  }

  void writeLoss(aten::NllLossForwardOp loss) {
    auto scores = loss.getSelf().getDefiningOp<aten::LogSoftmaxOp>();
    if (kernels.loss == LossKernel::Wide || !scores)
      return;
    Value logits = scores.getSelf(), value;
    auto wide = logits.getDefiningOp<aten::ToCopyOp>();
    // logits[..., :-1, :].contiguous(), here of all rows; the backward makes a
    // tensor of zeros that it writes the rows' gradient into.
    if (kernels.loss == LossKernel::InPlaceShifted)
      logits = make<aten::CloneOp>(
          loss, make<aten::SliceTensorOp>(
                    loss, logits, uint64_t(0), uint64_t(0),
                    uint64_t(tensorType(logits).getDimSize(0)), uint64_t(1)));
    else if (wide && kernels.loss != LossKernel::InPlaceWide)
      logits = wide.getSelf();
    if (kernels.loss == LossKernel::Narrow) {
      value = make<aten::LogSoftmaxOp>(loss, logits, scores.getDim());
      value = make<aten::NllLossForwardOp>(loss, value, loss.getTarget(),
                                           loss.getIgnoreIndex(),
                                           loss.getReduction());
      Type type = tensorType(loss.getOutput()).getElementType();
      if (tensorType(value).getElementType() != type)
        value = make<aten::ToCopyOp>(loss, value, type);
    } else {
      value = make<aten::CrossEntropyOp>(
          loss, logits, loss.getTarget(),
          static_cast<int64_t>(loss.getIgnoreIndex()),
          kernels.loss == LossKernel::InPlace ||
              kernels.loss == LossKernel::InPlaceWide ||
              kernels.loss == LossKernel::InPlaceShifted);
    }
    loss.getOutput().replaceAllUsesWith(value);
  }

  func::FuncOp function;
  const frameworks::Kernels &kernels;
};

} // namespace

void accel::toTrainerForm(func::FuncOp function,
                          const frameworks::Kernels &kernels) {
  TrainerForm(function, kernels).run();
}
