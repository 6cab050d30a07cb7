//===- Model.h - The model of a job, whatever it was read from --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_MODEL_H
#define ACCEL_TOOLS_DRIVER_INPUTS_MODEL_H

#include "frontends/HuggingFace/ModelConfig.h"
#include "frontends/TorchExport/Program.h"
#include "frontends/TorchExport/Symbols.h"

#include <memory>
#include <variant>

namespace accel {

/// A configuration of Hugging Face, or a program of torch.export.
class Model {
public:
  Model() = default;
  explicit Model(huggingface::ModelConfig config) : source(std::move(config)) {}
  Model(torchexport::Program program, torchexport::Sizes sizes)
      : source(
            std::make_shared<const torchexport::Program>(std::move(program))),
        sizes(std::move(sizes)) {}

  /// Null for a configuration.
  const torchexport::Program *program() const;
  const huggingface::ModelConfig *config() const {
    return std::get_if<huggingface::ModelConfig>(&source);
  }
  /// Ids that inputs may have are below this.
  int64_t vocabSize() const;
  /// The longest sequence that the model was made for, in tokens.
  int64_t maxPositions() const;
  /// False where samples are no sequences of tokens (images).
  bool hasTokens() const;
  /// The length that is planned where none is asked for.
  int64_t defaultLength() const;
  /// Dtype in which parameters are loaded, if the model tells.
  std::optional<plan::DType> dtype() const;
  huggingface::ModelInfo info() const;
  /// What a program's open sizes are, but for micro-batch and sequence.
  const torchexport::Sizes &openSizes() const { return sizes; }
  void setOpenSizes(std::map<std::string, int64_t> dims) {
    sizes.dims = std::move(dims);
  }

private:
  using Shared = std::shared_ptr<const torchexport::Program>;
  std::variant<std::monostate, huggingface::ModelConfig, Shared> source;
  torchexport::Sizes sizes;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_MODEL_H
