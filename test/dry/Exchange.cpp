//===- Exchange.cpp - Data between processes of one machine ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/Exchange.h"

#include "test/dry/Values.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace accel::dry {

Exchange::Exchange(int rank, int size, const std::string &name)
    : ownRank(rank), ranks(size) {
  const char *folder = std::getenv("DRY_EXCHANGE");
  prefix = std::string(folder ? folder : "/dev/shm") + "/dry-" + name + "-";
}

std::string Exchange::path(int rank, int64_t number) const {
  return prefix + std::to_string(number) + "-" + std::to_string(rank);
}

namespace {

void writeFile(const std::string &path, const void *data, size_t bytes) {
  const std::string part = path + ".part";
  std::FILE *file = std::fopen(part.c_str(), "wb");
  const bool ok = file && std::fwrite(data, 1, bytes, file) == bytes;
  if (!file || std::fclose(file) != 0 || !ok ||
      std::rename(part.c_str(), path.c_str()) != 0) {
    std::perror(path.c_str());
    std::abort();
  }
}

std::vector<char> readFile(const std::string &path, size_t bytes) {
  std::FILE *file = nullptr;
  while (!(file = std::fopen(path.c_str(), "rb")))
    usleep(50);
  std::vector<char> data(bytes);
  if (std::fread(data.data(), 1, bytes, file) != bytes) {
    std::fprintf(stderr,
                 "dry GPU: %s holds less than %zu bytes: the ranks' "
                 "collectives differ\n",
                 path.c_str(), bytes);
    std::abort();
  }
  std::fclose(file);
  return data;
}

} // namespace

void Exchange::run(Collective kind, const void *from, size_t sent, void *to,
                   size_t received, c10::ScalarType type, bool max) {
  Unobserved own;
  const size_t item = c10::elementSize(type);
  writeFile(path(ownRank, next), from, sent * item);
  // Everyone has read what is two collectives old.
  if (next >= 2)
    unlink(path(ownRank, next - 2).c_str());
  const int64_t count = static_cast<int64_t>(received);
  at::Tensor sum;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<char> data = readFile(path(rank, next), sent * item);
    if (kind == Collective::AllGather) {
      std::memcpy(static_cast<char *>(to) + rank * sent * item, data.data(),
                  sent * item);
      continue;
    }
    if (kind == Collective::AllToAll) {
      const size_t part = sent / ranks * item;
      std::memcpy(static_cast<char *>(to) + rank * part,
                  data.data() + ownRank * part, part);
      continue;
    }
    const size_t begin =
        kind == Collective::ReduceScatter ? ownRank * received * item : 0;
    at::Tensor piece =
        at::from_blob(data.data() + begin, {count}, at::TensorOptions(type));
    at::Tensor wide = piece.to(type == at::kDouble ? at::kDouble : at::kFloat);
    sum = !sum.defined() ? wide.clone()
          : max          ? at::maximum(sum, wide)
                         : sum + wide;
  }
  if (sum.defined())
    at::from_blob(to, {count}, at::TensorOptions(type)).copy_(sum);
  ++next;
}

std::string Exchange::message(int from, int to, int64_t number) const {
  return prefix + "m" + std::to_string(number) + "-" + std::to_string(from) +
         "-" + std::to_string(to);
}

void Exchange::send(const void *from, size_t bytes, int to) {
  Unobserved own;
  writeFile(message(ownRank, to, sent[to]++), from, bytes);
}

void Exchange::receive(void *to, size_t bytes, int from) {
  Unobserved own;
  const std::string path = message(from, ownRank, received[from]++);
  const std::vector<char> data = readFile(path, bytes);
  std::memcpy(to, data.data(), bytes);
  unlink(path.c_str()); // nobody else reads it
}

} // namespace accel::dry
