//===- Requests.h - What a job asks of the deciding passes ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINE_REQUESTS_H
#define ACCEL_PASSES_PIPELINE_REQUESTS_H

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Pipeline/Import.h"

#include "mlir/IR/Builders.h"

namespace accel {

/// Asks for activations between layers that are a rank's tokens; it has no
/// value.
inline constexpr llvm::StringLiteral sequenceRequest = "sequence_parallel";
inline constexpr llvm::StringLiteral expertsRequest = "experts";

/// Asks for torch's ring attention to send keys from neighbour to neighbour,
/// where it gathers them by default; it has no value.
inline constexpr llvm::StringLiteral contextSendsRequest = "context_sends";

/// Writes `sharding.request`s at the head of a module, each with the line of
/// the file that asked for it.
class RequestWriter {
public:
  RequestWriter(mlir::ModuleOp module, const JobConfig &job,
                const ImportOptions &options)
      : module(module), job(job), accelerate(job.accelerate), options(options),
        framework(*frameworks::findTrainer(options.trainer, options.framework)),
        b(mlir::OpBuilder::atBlockBegin(module.getBody())) {}

  sharding::BecauseAttr plain(llvm::StringRef why) {
    return sharding::BecauseAttr::get(b.getContext(), why);
  }

  /// The reason of a setting: its line if it was written, else its `why`.
  template <typename T>
  sharding::BecauseAttr because(const Setting<T> &setting, std::string text) {
    std::string why = setting.why.empty() ? std::move(text) : setting.why;
    std::string key = setting.key.substr(setting.key.rfind('.') + 1);
    if (!key.empty() && setting.written())
      why = setting.why.empty() ? key
            : setting.why.find(key) != std::string::npos
                ? setting.why
                : key + ": " + setting.why;
    else if (setting.origin == Origin::Default)
      why = "default: " + why;
    if (setting.at.file.empty() || setting.at.line == 0)
      return plain(why);
    return sharding::BecauseAttr::get(b.getContext(), why,
                                      b.getStringAttr(setting.at.file),
                                      setting.at.line, setting.at.column);
  }

  template <typename T> mlir::Location location(const Setting<T> &setting) {
    if (setting.at.file.empty())
      return module.getLoc();
    return mlir::FileLineColLoc::get(b.getStringAttr(setting.at.file),
                                     setting.at.line, setting.at.column);
  }

  void request(llvm::StringRef what, llvm::ArrayRef<mlir::NamedAttribute> value,
               sharding::BecauseAttr because) {
    mlir::Location loc =
        because.getFile()
            ? mlir::Location(mlir::FileLineColLoc::get(
                  because.getFile(), because.getLine(), because.getColumn()))
            : module.getLoc();
    sharding::RequestOp::create(b, loc, b.getStringAttr(what),
                                b.getDictionaryAttr(value), because);
  }

  void flag(llvm::SmallVector<mlir::NamedAttribute> &value,
            llvm::StringRef name, bool set) {
    if (set)
      value.push_back(b.getNamedAttr(name, b.getUnitAttr()));
  }
  void number(llvm::SmallVector<mlir::NamedAttribute> &value,
              llvm::StringRef name, std::optional<int64_t> n) {
    if (n)
      value.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(*n)));
  }

  mlir::Type floatType(plan::DType dtype) {
    return accel::floatType(b.getContext(), dtype);
  }

  mlir::ModuleOp module;
  const JobConfig &job;
  const AccelerateConfig &accelerate;
  const ImportOptions &options;
  const frameworks::Framework &framework;
  mlir::OpBuilder b;
};

/// Which parameters form a unit, and which units are freed after the forward.
void requestWrap(const RequestWriter &writer);
void requestReshard(const RequestWriter &writer);

/// What the file and the script say of subjects of a framework other than
/// accel-run: `offload`, `optimizer`, `zero`, `ddp`.
void requestFramework(const RequestWriter &writer);

} // namespace accel

#endif // ACCEL_PASSES_PIPELINE_REQUESTS_H
