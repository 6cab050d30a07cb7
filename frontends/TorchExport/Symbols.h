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

/// The name of a size that is one symbol, "s0" or "Symbol('s0', ...)"; empty
/// for numbers and other expressions.
std::string symbolOf(const Size &size);

/// A dimension of an input of the program.
struct Dimension {
  std::string input;
  size_t index = 0;
  const TensorMeta *meta = nullptr;

  const Size &size() const { return meta->sizes[index]; }
  std::string place() const { return input + "." + std::to_string(index); }
  /// What a job's sizes make of it; 0: nothing.
  int64_t wanted(const Sizes &sizes) const;
};
/// All of them, in the order of the program's inputs.
std::vector<Dimension> inputDimensions(const Program &program);

/// The symbols that a list of NAME=N fixes: NAME is a symbol ("s17"), a
/// dimension of an input ("x.1"), or "batch", the first dimension of every
/// input. Reports names that are unknown, sizes that are exported as another
/// number, and contradictions.
std::optional<std::map<std::string, int64_t>>
resolveDims(const Program &program,
            const std::vector<std::pair<std::string, int64_t>> &named,
            DiagnosticEngine &diagnostics);

/// The value of each symbol of the program's inputs.
class Symbols {
public:
  /// Reports inputs whose exported sizes contradict `sizes`, symbols that
  /// nothing fixes, and values outside of their bounds.
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
