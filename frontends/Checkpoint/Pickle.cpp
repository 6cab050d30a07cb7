//===- Pickle.cpp - Pickles as data, never as a program -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Pickle.h"

#include "frontends/Diagnostics/Diagnostics.h"

#include <bit>
#include <cstdio>
#include <unordered_map>

namespace accel::checkpoint {

namespace {
/// About fifteen values a shard of a tensor: two million shards.
constexpr size_t maxValues = size_t(32) << 20;
/// The newest protocol of Python.
constexpr uint8_t maxProtocol = 5;
} // namespace

class PickleParser {
public:
  using Kind = PickleValue::Kind;

  PickleParser(std::string_view bytes, bool (*allows)(std::string_view),
               Pickle::Problem &problem)
      : bytes(bytes), allows(allows), problem(problem) {}

  std::optional<Pickle> run() {
    while (at < bytes.size()) {
      begin = at;
      const auto op = uint8_t(bytes[at++]);
      if (op == '.') {
        ValueId id;
        if (!pop(id))
          return std::nullopt;
        pickle.top = id;
        return std::move(pickle);
      }
      if (!step(op))
        return std::nullopt;
    }
    begin = at;
    fail("it ends without STOP: the file is cut");
    return std::nullopt;
  }

private:
  bool fail(std::string message) {
    problem.offset = begin;
    problem.message = std::move(message);
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Bytes
  //===--------------------------------------------------------------------===//

  bool take(uint64_t count, std::string_view &into) {
    if (count > bytes.size() - at)
      return fail("an argument of " + std::to_string(count) +
                  " bytes leaves the file: the file is cut");
    into = bytes.substr(at, size_t(count));
    at += size_t(count);
    return true;
  }
  /// Little endian.
  bool number(int width, uint64_t &value) {
    std::string_view raw;
    if (!take(uint64_t(width), raw))
      return false;
    value = 0;
    for (int i = width - 1; i >= 0; --i)
      value = value << 8 | uint8_t(raw[size_t(i)]);
    return true;
  }
  bool line(std::string_view &into) {
    const size_t end = bytes.find('\n', at);
    if (end == std::string_view::npos)
      return fail("a name has no end: the file is cut");
    into = bytes.substr(at, end - at);
    at = end + 1;
    return true;
  }

  //===--------------------------------------------------------------------===//
  // The stack
  //===--------------------------------------------------------------------===//

  bool count() {
    return ++pickle.made <= maxValues ||
           fail("it has more than " + std::to_string(maxValues) + " values");
  }
  bool push(PickleValue value) {
    if (!count())
      return false;
    stack.push_back(ValueId(pickle.values.size()));
    pickle.values.push_back(std::move(value));
    return true;
  }
  bool push(Kind kind, int64_t value = 0) {
    PickleValue made;
    made.kind = kind;
    made.number = value;
    return push(std::move(made));
  }
  /// A value that no opcode changes, which `kept` remembers.
  bool pushOnce(std::optional<ValueId> &kept, PickleValue value) {
    if (kept) {
      stack.push_back(*kept);
      return count();
    }
    if (!push(std::move(value)))
      return false;
    kept = stack.back();
    return true;
  }
  bool pushOnce(std::optional<ValueId> &kept, Kind kind, int64_t value = 0) {
    PickleValue made;
    made.kind = kind;
    made.number = value;
    return pushOnce(kept, std::move(made));
  }
  bool pushText(Kind kind, int width) {
    uint64_t length;
    PickleValue made;
    made.kind = kind;
    return number(width, length) && take(length, made.text) &&
           push(std::move(made));
  }
  /// Values above the last MARK are taken by an opcode that ends it.
  bool pop(ValueId &id) {
    if (stack.size() <= (marks.empty() ? 0 : marks.back()))
      return fail("an opcode takes a value that is not there");
    id = stack.back();
    stack.pop_back();
    return true;
  }
  bool popToMark(std::vector<ValueId> &items) {
    if (marks.empty())
      return fail("an opcode takes a MARK that is not there");
    const auto first = stack.begin() + ptrdiff_t(marks.back());
    items.assign(first, stack.end());
    stack.erase(first, stack.end());
    marks.pop_back();
    return true;
  }
  bool top(PickleValue *&value) {
    if (stack.size() <= (marks.empty() ? 0 : marks.back()))
      return fail("an opcode takes a value that is not there");
    value = &pickle.values[stack.back()];
    return true;
  }

  bool tuple(int count) {
    PickleValue made;
    made.kind = Kind::Tuple;
    made.items.resize(size_t(count));
    for (int i = count - 1; i >= 0; --i)
      if (!pop(made.items[size_t(i)]))
        return false;
    return push(std::move(made));
  }
  bool marked(Kind kind) {
    PickleValue made;
    made.kind = kind;
    return popToMark(made.items) && push(std::move(made));
  }
  /// Two values become one that is called, made or persistent.
  bool pair(Kind kind) {
    PickleValue made;
    made.kind = kind;
    made.items.resize(2);
    if (!pop(made.items[1]) || !pop(made.items[0]))
      return false;
    if (!pickle.is(made.items[0], Kind::Global))
      return fail("it calls what is no class or function");
    return push(std::move(made));
  }
  /// Adds `items` to the container below them.
  bool extend(const std::vector<ValueId> &items, Kind kind) {
    PickleValue *into;
    if (!top(into))
      return false;
    const Kind found = into->kind;
    // collections.OrderedDict() is filled like a dictionary.
    const bool fits =
        found == kind || (kind == Kind::Dict && found == Kind::Call);
    if (!fits || (kind == Kind::Dict && items.size() % 2))
      return fail("it adds items to what does not take them");
    into->items.insert(into->items.end(), items.begin(), items.end());
    return true;
  }
  bool append(int count, Kind kind) {
    std::vector<ValueId> items(size_t(count), 0);
    for (int i = count - 1; i >= 0; --i)
      if (!pop(items[size_t(i)]))
        return false;
    return extend(items, kind);
  }
  bool appendMarked(Kind kind) {
    std::vector<ValueId> items;
    return popToMark(items) && extend(items, kind);
  }

  bool global(std::string_view module, std::string_view name) {
    std::string whole = std::string(module) + " " + std::string(name);
    if (!allows(whole)) {
      problem.foreign = true;
      return fail("it names '" + printable(module) + "." + printable(name) +
                  "', which no checkpoint of this kind needs");
    }
    std::optional<ValueId> &kept = globals[whole];
    PickleValue made;
    made.kind = Kind::Global;
    if (!kept)
      made.text = pickle.names.emplace_back(std::move(whole));
    return pushOnce(kept, std::move(made));
  }
  bool stackGlobal() {
    ValueId module, name;
    if (!pop(name) || !pop(module))
      return false;
    if (!pickle.is(module, Kind::Text) || !pickle.is(name, Kind::Text))
      return fail("the name of a class is no text");
    return global(pickle.at(module).text, pickle.at(name).text);
  }
  bool build() {
    ValueId state;
    PickleValue *object;
    if (!pop(state) || !top(object))
      return false;
    if (object->kind == Kind::Object && object->items.size() == 2)
      object->items.push_back(state);
    else if (object->kind != Kind::Call)
      return fail("it gives a state to what has none, or has one");
    return true;
  }

  bool put(uint64_t slot) {
    PickleValue *value;
    if (!top(value))
      return false;
    // Writers number from 0 on; a damaged file may name any slot.
    if (slot < memo.size()) {
      memo[slot] = stack.back();
    } else if (slot == memo.size()) {
      memo.push_back(stack.back());
      beyondMemo.erase(slot);
    } else {
      beyondMemo[slot] = stack.back();
    }
    return true;
  }
  bool get(int width) {
    uint64_t slot;
    if (!number(width, slot))
      return false;
    if (slot < memo.size()) {
      stack.push_back(memo[slot]);
      return true;
    }
    auto found = beyondMemo.find(slot);
    if (found == beyondMemo.end())
      return fail("it takes value " + std::to_string(slot) +
                  ", which was not kept");
    stack.push_back(found->second);
    return true;
  }
  bool putAt(int width) {
    uint64_t slot;
    return number(width, slot) && put(slot);
  }

  bool integer(int width, bool isSigned) {
    uint64_t value;
    if (!number(width, value))
      return false;
    if (value < std::size(smallNumbers))
      return pushOnce(smallNumbers[value], Kind::Int, int64_t(value));
    return push(Kind::Int, isSigned ? int64_t(int32_t(value)) : int64_t(value));
  }
  /// LONG1: two's complement of any width; counts have 64 bits at most.
  bool longInteger() {
    uint64_t width, value = 0;
    std::string_view raw;
    if (!number(1, width) || !take(width, raw))
      return false;
    if (raw.size() > 8) // Python's random states; nobody reads their value
      return push(Kind::Bytes);
    const bool negative = !raw.empty() && uint8_t(raw.back()) >= 0x80;
    value = negative ? ~uint64_t(0) : 0;
    for (size_t i = raw.size(); i-- > 0;)
      value = value << 8 | uint8_t(raw[i]);
    return push(Kind::Int, int64_t(value));
  }
  bool real() {
    std::string_view raw;
    if (!take(8, raw))
      return false;
    uint64_t bits = 0; // big endian
    for (char c : raw)
      bits = bits << 8 | uint8_t(c);
    PickleValue made;
    made.kind = Kind::Float;
    made.real = std::bit_cast<double>(bits);
    return push(std::move(made));
  }
  bool persistent() {
    ValueId name;
    if (!pop(name))
      return false;
    PickleValue made;
    made.kind = Kind::Persistent;
    made.items = {name};
    return push(std::move(made));
  }
  bool protocol() {
    uint64_t version;
    if (!number(1, version))
      return false;
    return version <= maxProtocol ||
           fail("its protocol is " + std::to_string(version) +
                ", and Python knows 0 to 5");
  }

  bool step(uint8_t op) {
    std::string_view first, second;
    uint64_t ignored;
    switch (op) {
    case 0x80:
      return protocol();
    case 0x95: // FRAME: how many bytes to read ahead
      return number(8, ignored);
    case '(':
      marks.push_back(stack.size());
      return true;
    case 'N':
      return pushOnce(none, Kind::None);
    case 0x88:
    case 0x89:
      return pushOnce(booleans[op == 0x88], Kind::Bool, op == 0x88);
    case 'K':
      return integer(1, false);
    case 'M':
      return integer(2, false);
    case 'J':
      return integer(4, true);
    case 0x8a:
      return longInteger();
    case 'G':
      return real();
    case 0x8c:
      return pushText(Kind::Text, 1);
    case 'X':
      return pushText(Kind::Text, 4);
    case 0x8d:
      return pushText(Kind::Text, 8);
    case 'C':
      return pushText(Kind::Bytes, 1);
    case 'B':
      return pushText(Kind::Bytes, 4);
    case ')':
      return pushOnce(emptyTuple, Kind::Tuple);
    case 0x85:
    case 0x86:
    case 0x87:
      return tuple(op - 0x84);
    case 't':
      return marked(Kind::Tuple);
    case ']':
      return push(Kind::List);
    case 'a':
      return append(1, Kind::List);
    case 'e':
      return appendMarked(Kind::List);
    case 0x8f:
      return push(Kind::Set);
    case 0x90:
      return appendMarked(Kind::Set);
    case '}':
      return push(Kind::Dict);
    case 's':
      return append(2, Kind::Dict);
    case 'u':
      return appendMarked(Kind::Dict);
    case 'c':
      return line(first) && line(second) && global(first, second);
    case 0x93:
      return stackGlobal();
    case 0x81:
      return pair(Kind::Object);
    case 'R':
      return pair(Kind::Call);
    case 'b':
      return build();
    case 'Q':
      return persistent();
    case 0x94:
      return put(memo.size() + beyondMemo.size());
    case 'q':
      return putAt(1);
    case 'r':
      return putAt(4);
    case 'h':
      return get(1);
    case 'j':
      return get(4);
    default:
      char text[8];
      std::snprintf(text, sizeof text, "0x%02x", unsigned(op));
      return fail(std::string("opcode ") + text +
                  " is none that torch writes into checkpoints");
    }
  }

  std::string_view bytes;
  bool (*allows)(std::string_view);
  Pickle::Problem &problem;
  Pickle pickle;
  std::vector<ValueId> stack;
  std::vector<size_t> marks;
  std::vector<ValueId> memo; // by slot
  std::unordered_map<uint64_t, ValueId> beyondMemo;
  std::unordered_map<std::string, std::optional<ValueId>> globals;
  std::optional<ValueId> none, booleans[2], emptyTuple, smallNumbers[256];
  size_t at = 0, begin = 0;
};

std::optional<Pickle> Pickle::parse(std::string_view bytes,
                                    bool (*allows)(std::string_view),
                                    Problem &problem) {
  return PickleParser(bytes, allows, problem).run();
}

std::string_view Pickle::typeOf(ValueId id) const {
  const PickleValue &value = values[id];
  return value.kind == Kind::Object || value.kind == Kind::Call
             ? values[value.items[0]].text
             : std::string_view();
}

std::span<const ValueId> Pickle::entries(ValueId id) const {
  const PickleValue *value = &values[id];
  if (value->kind == Kind::Object && value->items.size() == 3)
    value = &values[value->items[2]];
  const std::span<const ValueId> items(value->items);
  if (value->kind == Kind::Dict)
    return items;
  return value->kind == Kind::Call ? items.subspan(2) : items.first(0);
}

std::optional<ValueId> Pickle::field(ValueId id, std::string_view key) const {
  const std::span<const ValueId> items = entries(id);
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    if (const PickleValue &name = values[items[i]];
        name.kind == Kind::Text && name.text == key)
      return items[i + 1];
  return std::nullopt;
}

std::optional<int64_t> Pickle::integer(ValueId id) const {
  if (!is(id, Kind::Int))
    return std::nullopt;
  return values[id].number;
}

std::optional<std::string_view> Pickle::text(ValueId id) const {
  if (!is(id, Kind::Text))
    return std::nullopt;
  return values[id].text;
}

} // namespace accel::checkpoint
