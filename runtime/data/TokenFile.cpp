//===- TokenFile.cpp - Numbers in a mapped file ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/TokenFile.h"

#include <c10/util/Half.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::run {

std::optional<TokenType> parseTokenType(const std::string &name) {
  static const std::pair<const char *, TokenType> names[] = {
      {"uint8", TokenType::U8},   {"int8", TokenType::I8},
      {"uint16", TokenType::U16}, {"int16", TokenType::I16},
      {"uint32", TokenType::U32}, {"int32", TokenType::I32},
      {"uint64", TokenType::U64}, {"int64", TokenType::I64}};
  for (const auto &[text, type] : names)
    if (name == text)
      return type;
  return std::nullopt;
}

int64_t sizeOf(TokenType type) {
  switch (type) {
  case TokenType::F16:
    return 2;
  case TokenType::F32:
    return 4;
  case TokenType::F64:
    return 8;
  default:
    return int64_t(1) << (static_cast<int>(type) / 2);
  }
}

bool isFloat(TokenType type) { return type >= TokenType::F16; }

MappedFile::~MappedFile() {
  if (data)
    munmap(const_cast<char *>(data), size);
}

std::shared_ptr<MappedFile> MappedFile::open(const std::string &path,
                                             std::string &error) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (fd < 0 || fstat(fd, &info) != 0) {
    error = path + ": " + std::strerror(errno);
    if (fd >= 0)
      close(fd);
    return nullptr;
  }
  if (!S_ISREG(info.st_mode)) {
    error = path + ": not a regular file";
    close(fd);
    return nullptr;
  }
  auto result = std::make_shared<MappedFile>();
  result->size = info.st_size;
  if (info.st_size > 0) {
    void *memory = mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
      error = path + ": cannot be mapped: " + std::strerror(errno);
      close(fd);
      return nullptr;
    }
    result->data = static_cast<const char *>(memory);
  }
  close(fd);
  return result;
}

namespace {
/// Calls `body(first element as T *)`.
template <typename Body>
void forElements(const TokenFile &file, int64_t begin, Body &&body) {
  const char *at = file.file->data + file.offset + begin * sizeOf(file.type);
  switch (file.type) {
  case TokenType::U8:
    return body(at, uint8_t());
  case TokenType::I8:
    return body(at, int8_t());
  case TokenType::U16:
    return body(at, uint16_t());
  case TokenType::I16:
    return body(at, int16_t());
  case TokenType::U32:
    return body(at, uint32_t());
  case TokenType::I32:
    return body(at, int32_t());
  case TokenType::U64:
    return body(at, uint64_t());
  case TokenType::I64:
    return body(at, int64_t());
  case TokenType::F16:
    return body(at, c10::Half());
  case TokenType::F32:
    return body(at, float());
  case TokenType::F64:
    return body(at, double());
  }
}

template <typename T> T load(const char *at, int64_t i) {
  T value; // the file's data may be unaligned behind a header
  std::memcpy(&value, at + i * sizeof(T), sizeof(T));
  return value;
}
} // namespace

void TokenFile::read(int64_t begin, int64_t length, int64_t *into) const {
  forElements(*this, begin, [&](const char *at, auto zero) {
    for (int64_t i = 0; i < length; ++i)
      into[i] = static_cast<int64_t>(load<decltype(zero)>(at, i));
  });
}

void TokenFile::readFloats(int64_t begin, int64_t length, float *into) const {
  forElements(*this, begin, [&](const char *at, auto zero) {
    for (int64_t i = 0; i < length; ++i)
      into[i] = static_cast<float>(load<decltype(zero)>(at, i));
  });
}

int64_t TokenFile::findOutside(int64_t begin, int64_t length, int64_t low,
                               int64_t high) const {
  int64_t found = -1;
  forElements(*this, begin, [&](const char *at, auto zero) {
    for (int64_t i = 0; i < length && found < 0; ++i) {
      const auto value = static_cast<int64_t>(load<decltype(zero)>(at, i));
      if (value < low || value >= high)
        found = begin + i;
    }
  });
  return found;
}

bool openTokens(const std::string &path, TokenType type, TokenFile &file,
                std::string &error) {
  file = TokenFile();
  file.path = path;
  file.type = type;
  file.file = MappedFile::open(path, error);
  if (!file.file)
    return false;
  const int64_t size = sizeOf(type);
  if (file.file->size % size != 0) {
    error = path + ": " + std::to_string(file.file->size) +
            " bytes are not a whole number of " + std::to_string(size) +
            "-byte tokens: another dtype, or a truncated file?";
    return false;
  }
  file.count = file.file->size / size;
  file.shape = {file.count};
  return true;
}

} // namespace accel::run
