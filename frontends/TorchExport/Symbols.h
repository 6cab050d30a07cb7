//===- Symbols.h - Values of symbolic sizes ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_SYMBOLS_H
#define ACCEL_FRONTENDS_TORCHEXPORT_SYMBOLS_H

#include "frontends/TorchExport/Program.h"

namespace accel::torchexport {

/// What a plan fixes the open sizes of a program to.
struct Sizes {
  int64_t microBatch = 0;     // first dimension of every input; 0: as exported
  int64_t sequenceLength = 0; // second dimension of integer inputs
  int64_t targetLength = 0;   // the same of labels; 0: sequenceLength
  std::map<std::string, int64_t> dims; // --dim NAME=N, by symbol
};

/// The value of each symbol of the program's inputs.
class Symbols {
public:
  /// Reports inputs whose exported sizes contradict `sizes`, and symbols that
  /// nothing fixes.
  static std::optional<Symbols> bind(const Program &program, const Sizes &sizes,
                                     DiagnosticEngine &diagnostics);
  /// The value of a size; nullopt where its expression cannot be evaluated.
  std::optional<int64_t> valueOf(const Size &size) const;
  std::optional<std::vector<int64_t>>
  valuesOf(const std::vector<Size> &sizes) const;

private:
  std::map<std::string, int64_t> values;
};

/// Evaluates what sympy prints of integers: + - * // % **, parentheses, and
/// the functions Max, Min, Mod, FloorDiv, CeilToInt...; nullopt for anything
/// else, or where it overflows.
std::optional<int64_t>
evaluateExpression(const std::string &text,
                   const std::map<std::string, int64_t> &values);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_SYMBOLS_H
