//===- EmitRemarks.cpp - Decisions as MLIR remarks ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/EmitRemarks.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Remark/RemarkStreamer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace accel {
namespace {

/// "fsdp.yaml:9:3: remark: reshard of (root): ... [passed]".
class TextStreamer final : public remark::detail::MLIRRemarkStreamerBase {
public:
  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    llvm::raw_ostream &out = llvm::errs();
    if (auto at = dyn_cast<FileLineColLoc>(remark.getLocation()))
      out << at.getFilename().getValue() << ":" << at.getLine() << ":"
          << at.getColumn() << ": ";
    out << "remark: " << remark.getRemarkName() << " of "
        << remark.getFunction() << ": ";
    llvm::StringRef separator;
    for (const auto &arg : remark.getArgs()) {
      out << separator << arg.val;
      separator = "; ";
    }
    out << " [" << remark.getRemarkTypeString() << "]\n";
  }
};

void emit(MLIRContext &context, const std::vector<plan::Decision> &decisions) {
  using remark::detail::Remark;
  for (const plan::Decision &d : decisions) {
    mlir::Location at = UnknownLoc::get(&context);
    if (!d.file.empty())
      at = FileLineColLoc::get(&context, d.file, d.line, d.column);
    const std::string where = d.where.empty() ? "(root)" : d.where;
    auto options =
        remark::RemarkOpts::name(d.what).category("plan").function(where);
    if (d.what == "limit") {
      remark::analysis(at, options)
          << Remark::Arg("Choice", d.choice) << Remark::Arg("Why", d.why);
      continue;
    }
    remark::passed(at, options)
        << Remark::Arg("Choice", d.choice) << Remark::Arg("Why", d.why);
    for (const std::string &other : d.alternatives)
      remark::missed(at, options) << Remark::Arg("Refused", other);
  }
}

} // namespace

bool emitRemarks(MLIRContext &context,
                 const std::vector<plan::Decision> &decisions,
                 const OutputFile &file, DiagnosticEngine &engine) {
  const std::string &destination = file.path;
  remark::RemarkCategories all;
  all.passed = all.missed = all.analysis = "plan";
  auto policy = std::make_unique<remark::RemarkEmittingPolicyAll>();
  bool text = destination == "-";
  // LLVM writes in place: not where a person may be reading.
  std::string partial = destination + ".partial";
  if (!text &&
      !mayWrite({partial, file.overwrite}, FileForm::Remarks, "", engine))
    return false;
  LogicalResult enabled =
      text ? remark::enableOptimizationRemarks(context,
                                               std::make_unique<TextStreamer>(),
                                               std::move(policy), all)
           : remark::enableOptimizationRemarksWithLLVMStreamer(
                 context, partial, llvm::remarks::Format::YAML,
                 std::move(policy), all);
  if (failed(enabled)) {
    engine.error("write-failed", destination,
                 "remarks cannot be written there");
    return false;
  }
  emit(context, decisions);
  context.setRemarkEngine(nullptr); // finishes the stream
  if (text)
    return true;
  auto written = llvm::MemoryBuffer::getFile(partial);
  llvm::sys::fs::remove(partial);
  if (!written) {
    engine.error("write-failed", destination, written.getError().message());
    return false;
  }
  return writeOutputFile(file, FileForm::Remarks, (*written)->getBuffer().str(),
                         engine);
}

} // namespace accel
