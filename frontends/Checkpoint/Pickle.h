//===- Pickle.h - Pickles as data, never as a program -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A pickle is a program for a stack machine that may call anything. This reader
// builds a graph of values instead: a class or function is a name that has to
// be in the caller's allow list, a call is a node that nobody executes.
// Opcodes that torch's writers do not use are refused. Each opcode makes at
// most one value, and their number is bounded. Small numbers, names of classes
// and other values that nothing changes are kept once: a shard of a tensor
// takes fifteen values, and a large model has a million shards.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_PICKLE_H
#define ACCEL_FRONTENDS_CHECKPOINT_PICKLE_H

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace accel::checkpoint {

/// Values refer to each other by number, so a pickle may hold cycles.
using ValueId = uint32_t;

struct PickleValue {
  enum class Kind : uint8_t {
    None,
    Bool,
    Int,
    Float,
    Text,
    Bytes,
    Tuple,
    List,
    Set,
    Dict,       // items: key, value, key, value, ...
    Global,     // text: "module name"
    Object,     // items: class, arguments and, if it has one, its state
    Call,       // items: function, arguments, then entries
    Persistent, // items: what the writer calls it
  };
  Kind kind = Kind::None;
  union {
    int64_t number = 0; // of Bool and Int
    double real;        // of Float
  };
  std::string_view text; // into the pickle
  std::vector<ValueId> items;
};

class Pickle {
public:
  using Kind = PickleValue::Kind;

  /// What is wrong, and at which byte.
  struct Problem {
    size_t offset = 0;
    std::string message;
    /// A name outside of the allow list: perhaps an attack.
    bool foreign = false;
  };

  /// `bytes` must outlive the result. `allows` says whether a pickle of this
  /// kind may name "module name".
  static std::optional<Pickle> parse(std::string_view bytes,
                                     bool (*allows)(std::string_view),
                                     Problem &problem);

  ValueId root() const { return top; }
  /// How many values its opcodes made; some of them are one here.
  size_t size() const { return made; }
  const PickleValue &at(ValueId id) const { return values[id]; }
  bool is(ValueId id, Kind kind) const { return values[id].kind == kind; }
  /// The class of an object or the function of a call, else "".
  std::string_view typeOf(ValueId id) const;
  /// Keys and values in turn: of a dictionary, of an object's state, or of what
  /// was filled after its call (OrderedDict). Empty for everything else.
  std::span<const ValueId> entries(ValueId id) const;
  /// The value of a text key in the entries.
  std::optional<ValueId> field(ValueId id, std::string_view key) const;
  std::optional<int64_t> integer(ValueId id) const;
  std::optional<std::string_view> text(ValueId id) const;

private:
  friend class PickleParser;
  std::deque<PickleValue> values;
  std::deque<std::string> names; // of globals, which `text` refers to
  ValueId top = 0;
  size_t made = 0;
};

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_PICKLE_H
