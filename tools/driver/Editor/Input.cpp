//===- Input.cpp - Messages of an editor, checked -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Editor/Input.h"

#include <cstdio>

namespace accel {

constexpr size_t mostBytes = size_t(64) << 20, mostNesting = 200,
                 longestHeader = 4096;

/// How deep brackets nest, those in strings left out.
static size_t nesting(const std::string &json) {
  size_t depth = 0, most = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '\\' && inString)
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '{' || c == '['))
      most = std::max(most, ++depth);
    else if (!inString && (c == '}' || c == ']') && depth)
      --depth;
  }
  return most;
}

/// What is wrong with a message; nullptr: nothing.
static const char *wrongIn(const std::string &json) {
  if (nesting(json) > mostNesting)
    return "nests too deep";
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value) {
    llvm::consumeError(value.takeError());
    return "is no JSON";
  }
  const llvm::json::Object *object = value->getAsObject();
  if (!object || object->getString("jsonrpc") != llvm::StringRef("2.0"))
    return "is no JSON-RPC 2.0";
  const llvm::json::Value *id = object->get("id");
  if (id && !id->getAsString() && !id->getAsInteger())
    return "has an id that is neither text nor an integer";
  if (!object->getString("method") && !id)
    return "has neither a method nor an id";
  return nullptr;
}

bool CheckedInput::readLine(std::string &line) {
  line.clear();
  for (int c; (c = std::fgetc(in)) != EOF;) {
    if (c == '\n') {
      if (!line.empty() && line.back() == '\r')
        line.pop_back();
      return true;
    }
    line += static_cast<char>(c);
    if (line.size() > longestHeader)
      return false;
  }
  return false;
}

llvm::LogicalResult CheckedInput::readStandardMessage(std::string &json) {
  uint64_t length = 0;
  for (std::string line; readLine(line) && !line.empty();) {
    llvm::StringRef text = line;
    if (text.consume_front_insensitive("Content-Length:") &&
        text.trim().getAsInteger(10, length))
      length = 0;
  }
  if (length == 0)
    return llvm::failure();
  if (length > mostBytes) {
    std::fprintf(stderr, "accel-opt lsp: a message of %llu bytes is dropped\n",
                 static_cast<unsigned long long>(length));
    for (; length > 0 && std::fgetc(in) != EOF; --length) {
    }
    return llvm::failure();
  }
  json.resize(length);
  if (std::fread(json.data(), 1, length, in) != length)
    return llvm::failure();
  const char *wrong = wrongIn(json);
  if (wrong)
    std::fprintf(stderr, "accel-opt lsp: a message %s; it is dropped\n", wrong);
  return llvm::success(!wrong);
}

} // namespace accel
