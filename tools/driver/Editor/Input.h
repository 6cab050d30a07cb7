//===- Input.h - Messages of an editor, checked -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EDITOR_INPUT_H
#define ACCEL_TOOLS_DRIVER_EDITOR_INPUT_H

#include "llvm/Support/LSP/Transport.h"

namespace accel {

/// Reads messages with their Content-Length, and drops what is no JSON-RPC 2.0:
/// LLVM's transport would end the server at it, take any length for memory to
/// allocate, and recurse as deep as a text nests. Says so on stderr.
class CheckedInput : public llvm::lsp::JSONTransportInput {
public:
  explicit CheckedInput(std::FILE *in) : in(in) {}

  bool hasError() const final { return std::ferror(in); }
  bool isEndOfInput() const final { return std::feof(in); }
  llvm::LogicalResult readStandardMessage(std::string &json) final;
  /// Of lit tests of LLVM's own; not spoken here.
  llvm::LogicalResult readDelimitedMessage(std::string &) final {
    return llvm::failure();
  }

private:
  /// Without its end; false at the end of input or where it is too long.
  bool readLine(std::string &line);

  std::FILE *in;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EDITOR_INPUT_H
