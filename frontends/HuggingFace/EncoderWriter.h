//===- EncoderWriter.h - Layers of encoders as operators --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_ENCODERWRITER_H
#define ACCEL_FRONTENDS_HUGGINGFACE_ENCODERWRITER_H

#include "frontends/HuggingFace/EncoderConfig.h"
#include "frontends/HuggingFace/FunctionWriter.h"

namespace accel::huggingface {

/// One attention: `rows` queries see `keys` keys, each of `heads` heads.
struct AttentionShape {
  int64_t batch = 1, rows = 1, keys = 1, heads = 1, headDim = 1;
  bool causal = false;
  double scale = 1.0;
  double dropped = 0; // probability, of attention weights
  /// transformers' form; see byHeadsAttr and maskBias of dialects/Aten/Eager.h.
  bool byHeads = false, zeroBias = false;
};

/// A function whose modules are torch's own layers.
class EncoderWriter : public FunctionWriter {
public:
  using FunctionWriter::FunctionWriter;

  void declareLinear(llvm::StringRef module, int64_t in, int64_t out,
                     bool bias = true);
  void declareNorm(llvm::StringRef module, int64_t size);

  /// `rows` [n, in] -> [n, out]; with a bias if one was declared.
  mlir::Value linear(mlir::Value rows, llvm::StringRef module);
  mlir::Value norm(mlir::Value x, llvm::StringRef module, double eps);
  /// Rows of the table `module`; -1: no padding row.
  mlir::Value lookUp(llvm::StringRef module, mlir::Value indices,
                     int64_t padding = -1);
  /// The first `count` rows of the table `module`, or with 1 the first row for
  /// each token. transformers looks them up at positions [held, tokens],
  /// expanded to [used, tokens].
  mlir::Value firstRows(llvm::StringRef module, int64_t count, int64_t held,
                        int64_t used, int64_t tokens);
  /// Rows [batch * n, heads * headDim] of queries, keys and values -> rows.
  /// `mask`, if any, is added to the scores: [batch or 1, heads or 1, rows or
  /// 1, keys].
  mlir::Value attention(const AttentionShape &shape, mlir::Value query,
                        mlir::Value key, mlir::Value value,
                        mlir::Value mask = {});
  /// The same by single matmuls, so that `bias`, which is added to the scores,
  /// gets a gradient; kernels give it none. The bias has what `causal` says.
  mlir::Value biasedAttention(const AttentionShape &shape, mlir::Value query,
                              mlir::Value key, mlir::Value value,
                              mlir::Value bias);
  /// x [batch, n, hidden] -> its first token [batch, hidden].
  mlir::Value firstToken(mlir::Value x);
  /// Labels [batch, n] -> the decoder's tokens: `start`, then the labels but
  /// the last; `padding` stands for what the loss ignores.
  mlir::Value shiftRight(mlir::Value labels, int64_t start, int64_t padding);
  /// As crossEntropy; transformers takes it in the type of `logits`.
  mlir::Value plainCrossEntropy(mlir::Value logits, mlir::Value labels);
  /// The loss of logits [batch, labels] under `classifier`.
  mlir::Value classify(mlir::Value logits, mlir::Value labels,
                       const ClassifierConfig &classifier);

  mlir::Type i64() { return builder.getI64Type(); }
  mlir::RankedTensorType floats(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, f32());
  }
  mlir::Value slice(mlir::Value x, int64_t dim, int64_t begin, int64_t end,
                    int64_t step = 1) {
    return op<aten::SliceTensorOp>(x, uint64_t(dim), uint64_t(begin),
                                   uint64_t(end), uint64_t(step));
  }
  /// 0 where `seen` (a truth value as a number) is 1, minus infinity where it
  /// is 0.
  mlir::Value added(mlir::Value seen) {
    return op<aten::RsubScalarOp>(op<aten::ReciprocalOp>(seen), 1.0);
  }
  /// `value`, whose operator transformers computes otherwise; see
  /// dialects/Aten/Eager.h.
  mlir::Value marked(mlir::Value value, llvm::StringRef attribute,
                     llvm::StringRef how = "");
  /// A contiguous copy.
  mlir::Value contiguous(mlir::Value x) { return op<aten::CloneOp>(x); }

private:
  mlir::Value splitHeads(const AttentionShape &shape, mlir::Value rows,
                         int64_t count);
  mlir::Value mean(mlir::Value x);
  mlir::Value logistic(mlir::Value logits, mlir::Value labels);
};

/// [micro-batch, ...] of int64 or f32, as labels of a classifier are.
mlir::RankedTensorType labelsType(mlir::OpBuilder &builder, int64_t batch,
                                  const ClassifierConfig &classifier);

/// The function that makes of an attention mask of 0 and 1 [batch, keys] what
/// is added to scores, [batch, 1, 1, keys]: 0 or minus infinity.
mlir::func::FuncOp addedMask(mlir::OpBuilder &builder, llvm::StringRef path,
                             int64_t batch, int64_t keys);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_ENCODERWRITER_H
