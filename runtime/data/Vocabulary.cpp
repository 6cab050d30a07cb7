//===- Vocabulary.cpp - Text of tokens ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Vocabulary.h"

#include <nlohmann/json.hpp>

#include <fstream>

namespace accel::run {

using nlohmann::json;

namespace {

/// The byte that GPT-2's table writes as this character, or -1.
int byteOf(uint32_t character) {
  auto printable = [](uint32_t c) {
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac) ||
           (c >= 0xae && c <= 0xff);
  };
  if (character < 256)
    return printable(character) ? static_cast<int>(character) : -1;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte)
    if (!printable(byte) && next++ == character)
      return static_cast<int>(byte);
  return -1;
}

/// The character at `at`, which moves on; -1 for bytes that are no UTF-8: as
/// many as could begin a character, as Unicode advises.
int64_t nextCharacter(const std::string &text, size_t &at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80)
    return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc2 ? 1 : 0;
  if (more == 0 || lead > 0xf4)
    return -1;
  int64_t character = lead & (0x3f >> more);
  for (int i = 0; i < more; ++i, ++at) {
    const unsigned char next = at < text.size() ? text[at] : 0;
    // Neither longer than need be, nor half of a pair, nor too large.
    const int low = i > 0          ? 0x80
                    : lead == 0xe0 ? 0xa0
                    : lead == 0xf0 ? 0x90
                                   : 0x80;
    const int high = i > 0          ? 0xbf
                     : lead == 0xed ? 0x9f
                     : lead == 0xf4 ? 0x8f
                                    : 0xbf;
    if (next < low || next > high)
      return -1;
    character = character << 6 | (next & 0x3f);
  }
  return character;
}

/// `text` with U+FFFD for what is no UTF-8.
std::string validText(const std::string &text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (nextCharacter(text, at) < 0)
      result += "\xef\xbf\xbd";
    else
      result.append(text, begin, at - begin);
  }
  return result;
}

void replaceAll(std::string &text, const std::string &from,
                const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
}

struct Unknown {
  std::string what;
};

} // namespace

Vocabulary Vocabulary::ofBytes() {
  Vocabulary result;
  result.bytes = true;
  return result;
}

std::optional<Vocabulary> Vocabulary::read(const std::string &path,
                                           std::string &why) {
  Vocabulary result;
  auto decoder = [&](const json &step, auto &&self) -> void {
    const std::string type = step.at("type").get<std::string>();
    if (type == "Sequence") {
      for (const json &inner : step.at("decoders"))
        self(inner, self);
    } else if (type == "ByteLevel") {
      result.byteLevel = true;
    } else if (type == "ByteFallback") {
      result.byteFallback = true;
    } else if (type == "Metaspace") {
      result.replaced.emplace_back(
          step.value("replacement", std::string("\xe2\x96\x81")), " ");
      if (step.value("prepend_scheme", std::string("always")) != "never")
        result.strippedSpaces = 1;
    } else if (type == "Replace" && step.at("pattern").contains("String")) {
      result.replaced.emplace_back(
          step.at("pattern").at("String").get<std::string>(),
          step.at("content").get<std::string>());
    } else if (type == "Strip" && step.at("content") == " ") {
      result.strippedSpaces = step.at("start").get<int64_t>();
    } else if (type != "Fuse") {
      throw Unknown{type};
    }
  };
  try {
    std::ifstream file(path);
    if (!file) {
      why = path + ": cannot be opened";
      return std::nullopt;
    }
    const json whole = json::parse(file);
    const json &vocabulary = whole.at("model").at("vocab");
    if (vocabulary.is_object()) {
      for (const auto &[token, id] : vocabulary.items())
        result.tokens[id.get<int64_t>()] = token;
    } else {
      int64_t id = 0;
      for (const json &entry : vocabulary) // Unigram: [token, score]
        result.tokens[id++] = entry.at(0).get<std::string>();
    }
    for (const json &token : whole.value("added_tokens", json::array())) {
      const auto id = token.at("id").get<int64_t>();
      result.added[id] = token.at("content").get<std::string>();
      result.special[id] = token.value("special", false);
    }
    if (whole.contains("decoder") && !whole["decoder"].is_null())
      decoder(whole["decoder"], decoder);
    else
      throw Unknown{"none"};
  } catch (const json::exception &error) {
    why = path + ": " + error.what();
    return std::nullopt;
  } catch (const Unknown &unknown) {
    why = path + ": its decoder, " + unknown.what + ", is not known here";
    return std::nullopt;
  }
  return result;
}

std::string Vocabulary::piece(const std::string &token) const {
  if (byteFallback && token.size() == 6 && token.rfind("<0x", 0) == 0 &&
      token.find_first_not_of("0123456789ABCDEFabcdef", 3) == 5)
    return std::string(
        1, static_cast<char>(std::stoi(token.substr(3), nullptr, 16)));
  std::string text = token;
  for (const auto &[from, to] : replaced)
    replaceAll(text, from, to);
  if (!byteLevel)
    return text;
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int64_t character = nextCharacter(text, at);
    const int byte =
        character < 0 ? -1 : byteOf(static_cast<uint32_t>(character));
    if (byte < 0)
      result.append(text, begin, at - begin);
    else
      result += static_cast<char>(byte);
  }
  return result;
}

std::string Vocabulary::decode(const std::vector<int64_t> &ids) const {
  std::string text;
  for (int64_t id : ids) {
    if (bytes) {
      text += static_cast<char>(id);
    } else if (auto own = added.find(id); own != added.end()) {
      if (!special.at(id))
        text += own->second;
    } else if (auto token = tokens.find(id); token != tokens.end()) {
      text += piece(token->second);
    }
  }
  int64_t spaces = 0;
  while (spaces < strippedSpaces && text[spaces] == ' ')
    ++spaces;
  return validText(text.substr(spaces));
}

} // namespace accel::run
