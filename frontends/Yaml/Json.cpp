//===- Json.cpp - JSON with positions -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Accepts what Python's json.load accepts, NaN and Infinity included.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Utf8.h"
#include "frontends/Yaml/Builder.h"
#include "frontends/Yaml/Resolver.h"

#include <charconv>
#include <limits>

using namespace accel;
using namespace accel::yaml;

namespace {

class JsonAsYaml {
public:
  JsonAsYaml(const std::string &file, std::string_view input,
             DiagnosticEngine &engine, const Limits &limits)
      : builder(file, engine, limits), input(input) {}

  std::unique_ptr<Document> read() {
    if (input.starts_with("\xef\xbb\xbf")) {
      builder.error("file-encoding", mark, "a byte order mark before JSON",
                    "save the file as UTF-8 without BOM");
      return nullptr;
    }
    space();
    const Node *root = value(0);
    if (!root)
      return nullptr;
    space();
    if (at != input.size())
      return fail("text after the end of the value"), nullptr;
    return builder.finish(root);
  }

private:
  Builder builder;
  std::string_view input;
  size_t at = 0;
  Mark mark;

  char peek() const { return at < input.size() ? input[at] : '\0'; }
  void advance() {
    char c = input[at++];
    mark.byte = at;
    bool carriage = c == '\r' && !(at < input.size() && input[at] == '\n');
    if (c == '\n' || carriage) {
      ++mark.line;
      mark.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      ++mark.column; // not a further byte of a character
    }
  }
  void space() {
    while (at < input.size() && (peek() == ' ' || peek() == '\t' ||
                                 peek() == '\n' || peek() == '\r'))
      advance();
  }
  bool take(std::string_view word) {
    if (input.substr(at, word.size()) != word)
      return false;
    for (size_t i = 0; i < word.size(); ++i)
      advance();
    return true;
  }
  void fail(const std::string &message, const std::string &hint = "") {
    builder.error(
        "yaml-syntax", mark,
        at == input.size() ? "the file ends here, " + message : message, hint);
  }

  const Node *value(int depth) {
    if (!builder.checkDepth(depth, mark))
      return nullptr;
    Node *n = builder.create(mark);
    if (!n)
      return nullptr;
    bool good = false;
    switch (peek()) {
    case '{':
      good = object(*n, depth);
      break;
    case '[':
      good = array(*n, depth);
      break;
    case '"':
      good = string(*n);
      break;
    default:
      good = literal(*n);
    }
    n->range.end = mark;
    return good ? n : nullptr;
  }

  bool literal(Node &n) {
    size_t start = at;
    if (take("true") || take("false")) {
      n.kind = Kind::Bool;
      n.boolean = input[start] == 't';
    } else if (take("null")) {
      n.kind = Kind::Null;
    } else if (take("NaN")) {
      n.kind = Kind::Float;
      n.number = std::numeric_limits<double>::quiet_NaN();
    } else if (take("Infinity") || take("-Infinity")) {
      n.kind = Kind::Float;
      n.number = std::numeric_limits<double>::infinity();
      if (input[start] == '-')
        n.number = -n.number;
    } else if (!number(n)) {
      return false;
    }
    n.text = input.substr(start, at - start);
    return true;
  }

  size_t digits() {
    size_t start = at;
    while (peek() >= '0' && peek() <= '9')
      advance();
    return at - start;
  }

  bool number(Node &n) {
    size_t start = at;
    take("-");
    if (!take("0") && !digits())
      return fail("expected a value",
                  peek() == '\'' ? "JSON wants double quotes" : ""),
             false;
    bool whole = true;
    auto attempt = [&](auto &&part) {
      size_t oldAt = at;
      Mark oldMark = mark;
      if (part()) {
        whole = false;
      } else {
        at = oldAt;
        mark = oldMark;
      }
    };
    attempt([&] { return take(".") && digits(); });
    attempt([&] {
      if (!take("e") && !take("E"))
        return false;
      if (!take("+"))
        take("-");
      return digits() > 0;
    });
    n.text = input.substr(start, at - start);
    if (whole)
      return constructScalar(Tag::Int, n);
    n.kind = Kind::Float;
    auto [stop, error] =
        std::from_chars(n.text.data(), n.text.data() + n.text.size(), n.number);
    (void)stop;
    if (error == std::errc::result_out_of_range)
      n.number = n.text.find("e-") != std::string::npos ||
                         n.text.find("E-") != std::string::npos
                     ? 0.0
                     : std::numeric_limits<double>::infinity();
    if (error == std::errc::result_out_of_range && n.text[0] == '-')
      n.number = -n.number;
    return true;
  }

  bool hex4(uint32_t &code) {
    code = 0;
    for (int i = 0; i < 4; ++i) {
      char c = peek();
      uint32_t digit = c >= '0' && c <= '9'   ? c - '0'
                       : c >= 'a' && c <= 'f' ? c - 'a' + 10
                       : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                              : 16;
      if (digit == 16)
        return fail("expected four hexadecimal digits after '\\u'"), false;
      code = code * 16 + digit;
      advance();
    }
    return true;
  }

  bool escape(std::string &text) {
    constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
    if (peek() != 'u') {
      size_t i =
          at < input.size() ? names.find(peek()) : std::string_view::npos;
      if (i == std::string_view::npos)
        return fail("no such escape in a JSON string"), false;
      text += values[i];
      advance();
      return true;
    }
    advance();
    uint32_t code = 0, low = 0;
    if (!hex4(code))
      return false;
    while (code >= 0xd800 && code < 0xdc00 && take("\\u")) {
      if (!hex4(low))
        return false;
      if (low >= 0xdc00 && low < 0xe000) {
        appendUtf8(text, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
        return true;
      }
      appendUtf8(text, code);
      code = low;
    }
    // Python keeps half a pair; so does the text, as three bytes.
    appendUtf8(text, code);
    return true;
  }

  bool string(Node &n) {
    n.kind = Kind::String;
    n.style = Style::DoubleQuoted;
    advance();
    while (at < input.size()) {
      char c = peek();
      if (c == '"') {
        advance();
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20)
        return fail("a control character inside of a string"), false;
      advance();
      if (c != '\\')
        n.text += c;
      else if (!escape(n.text))
        return false;
    }
    return fail("inside of a string"), false;
  }

  bool array(Node &n, int depth) {
    n.kind = Kind::Sequence;
    n.style = Style::Flow;
    advance();
    space();
    if (take("]"))
      return true;
    while (true) {
      space();
      const Node *item = value(depth + 1);
      if (!item)
        return false;
      n.items.push_back(item);
      space();
      if (take("]"))
        return true;
      if (!take(","))
        return fail("expected ',' or ']'"), false;
    }
  }

  bool object(Node &n, int depth) {
    n.kind = Kind::Mapping;
    n.style = Style::Flow;
    advance();
    space();
    if (take("}"))
      return true;
    while (true) {
      space();
      if (peek() != '"')
        return fail("expected a key in double quotes"), false;
      const Node *key = value(depth + 1);
      if (!key)
        return false;
      space();
      if (!take(":"))
        return fail("expected ':'"), false;
      space();
      const Node *item = value(depth + 1);
      if (!item)
        return false;
      n.entries.push_back({key, item, false, true, item->range});
      space();
      if (take("}")) {
        builder.makeUnique(n);
        return true;
      }
      if (!take(","))
        return fail("expected ',' or '}'"), false;
    }
  }
};

} // namespace

std::unique_ptr<Document> accel::yaml::readJson(const std::string &file,
                                                std::string_view text,
                                                DiagnosticEngine &engine,
                                                const Limits &limits) {
  return JsonAsYaml(file, text, engine, limits).read();
}
