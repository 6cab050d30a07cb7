//===- PeerMemory.cpp - Pieces read from the memory of a peer -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/PeerMemory.h"

#include "runtime/collectives/Environment.h"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace accel::run {

namespace {
int64_t leastBytes = Environment().leastPeerBytes;

using Token = std::array<uint64_t, 2>;

[[noreturn]] void failed(const std::string &what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// Reads `bytes` at `address` of `process`. Throws std::system_error.
void readMemory(int64_t process, int64_t address, void *into, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const iovec to{static_cast<char *>(into) + done, bytes - done};
    const iovec from{reinterpret_cast<void *>(address + done), bytes - done};
    const ssize_t count =
        process_vm_readv(static_cast<pid_t>(process), &to, 1, &from, 1, 0);
    if (count < 0 && errno != EINTR)
      failed("reading the memory of process " + std::to_string(process));
    done += std::max<ssize_t>(count, 0);
  }
}

/// A socket of this machine; closed at the end.
class Socket {
public:
  explicit Socket(int descriptor) : descriptor(descriptor) {
    if (descriptor < 0)
      failed("a socket of this machine");
  }
  Socket(Socket &&other) noexcept
      : descriptor(std::exchange(other.descriptor, -1)) {}
  ~Socket() {
    if (descriptor >= 0)
      close(descriptor);
  }
  int get() const { return descriptor; }

private:
  int descriptor;
};

Socket makeSocket(std::chrono::seconds timeout) {
  Socket made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{static_cast<time_t>(timeout.count()), 0};
  setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  return made;
}

/// A name without a file: the kernel removes it with the process.
struct Address {
  sockaddr_un name{};
  socklen_t length;

  explicit Address(const Token &token) {
    name.sun_family = AF_UNIX;
    const std::string text = "accel-run-" + std::to_string(token[0]) + "-" +
                             std::to_string(token[1]);
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                    text.size());
  }
  const sockaddr *get() const {
    return reinterpret_cast<const sockaddr *>(&name);
  }
};

/// The bytes of a message that lives in `value`.
template <typename T> at::Tensor message(T &value) {
  return at::from_blob(&value, {static_cast<int64_t>(sizeof(T))},
                       at::TensorOptions(at::ScalarType::Byte));
}
} // namespace

/// Where a rank's memory is: who reads another token at `address` reads another
/// process of that number, one of another container or machine.
struct PeerMemory::Place {
  int64_t process = 0, address = 0, leastBytes = 0;
  Token token{};
};

/// Of the pieces that one rank reads in the memory of another: where they lie
/// one way, that they were read the other way, both in the order of sending.
struct PeerMemory::Channel {
  Socket socket;
  int64_t process = 0;           // of whom is read
  int64_t leastBytes = 0;        // of a piece, the same at both ends
  int64_t lent = 0, answers = 0; // of who lends

  explicit Channel(Socket socket) : socket(std::move(socket)) {}
  static bool carries(const std::shared_ptr<Channel> &channel,
                      const at::Tensor &piece) {
    return channel &&
           static_cast<int64_t>(piece.nbytes()) >= channel->leastBytes;
  }
  void send(const void *bytes, size_t size) const {
    const auto *from = static_cast<const char *>(bytes);
    for (size_t done = 0; done < size;) {
      const ssize_t count =
          ::send(socket.get(), from + done, size - done, MSG_NOSIGNAL);
      if (count < 0 && errno != EINTR)
        failed("telling a rank of this machine");
      done += std::max<ssize_t>(count, 0);
    }
  }
  /// At least one byte. Throws where the peer has gone.
  size_t receiveSome(void *bytes, size_t size) const {
    for (;;) {
      const ssize_t count = recv(socket.get(), bytes, size, 0);
      if (count > 0)
        return count;
      if (count == 0)
        throw std::runtime_error("connection closed by a rank of this machine");
      if (errno == EAGAIN) // SO_RCVTIMEO
        throw std::runtime_error(
            "timed out waiting for a rank of this machine");
      if (errno != EINTR)
        failed("waiting for a rank of this machine");
    }
  }
  void receive(void *bytes, size_t size) const {
    for (size_t done = 0; done < size;)
      done += receiveSome(static_cast<char *>(bytes) + done, size - done);
  }
};

/// A piece of this rank: done when the peer has read it.
struct PeerMemory::Lent : c10d::Work {
  at::Tensor piece;
  std::shared_ptr<Channel> channel;
  int64_t number = 0; // of the channel's

  bool wait(std::chrono::milliseconds) override {
    std::array<char, 64> answers{};
    while (channel->answers < number)
      channel->answers += static_cast<int64_t>(
          channel->receiveSome(answers.data(), answers.size()));
    piece.reset();
    return true;
  }
};

/// A piece of a peer, to be read by the thread.
struct PeerMemory::Read : c10d::Work {
  at::Tensor into;
  std::shared_ptr<Channel> channel;

  void run() {
    std::exception_ptr error;
    try {
      int64_t address = 0;
      channel->receive(&address, sizeof(address));
      readMemory(channel->process, address, into.data_ptr(), into.nbytes());
      channel->send("", 1);
    } catch (...) {
      error = std::current_exception();
    }
    // The thread that still knows of it keeps no bytes alive.
    into.reset();
    finish(error);
  }
};

PeerMemory::PeerMemory(c10::intrusive_ptr<c10d::Backend> made,
                       std::chrono::seconds timeout)
    : group(std::move(made)), timeout(timeout), lends(group->getSize()),
      reads(group->getSize()) {
  if (group->getSize() == 1)
    return;
  meet();
  if (peersRead() > 0)
    reader = std::thread([this] { readAll(); });
}

int PeerMemory::peersRead() const {
  return static_cast<int>(reads.size() -
                          std::count(reads.begin(), reads.end(), nullptr));
}

PeerMemory::~PeerMemory() {
  {
    std::lock_guard lock(mutex);
    ends = true;
  }
  for (const std::shared_ptr<Channel> &channel : reads)
    if (channel)
      shutdown(channel->socket.get(), SHUT_RDWR);
  changed.notify_one();
  if (reader.joinable())
    reader.join();
}

/// Between all pairs, by messages of the group.
void PeerMemory::tell(const std::function<at::Tensor(int)> &sent,
                      const std::function<at::Tensor(int)> &received) {
  std::vector<Work> works;
  for (int peer = 0; peer < group->getSize(); ++peer) {
    if (peer == group->getRank())
      continue;
    std::vector<at::Tensor> from{received(peer)}, to{sent(peer)};
    works.push_back(group->recv(from, peer, 0));
    works.push_back(group->send(to, peer, 0));
  }
  for (Work &work : works)
    work->wait();
}

void setLeastPeerBytes(int64_t bytes) { leastBytes = bytes; }

/// All tell where they are, try to read one another, and tell whom they could.
void PeerMemory::meet() {
  const int own = group->getRank(), size = group->getSize();
  Place mine;
  mine.leastBytes = leastBytes;
  std::optional<Socket> listens;
  if (mine.leastBytes > 0) {
    std::random_device random;
    for (uint64_t &part : mine.token)
      part = uint64_t(random()) << 32 | random();
    const Address address(mine.token);
    listens.emplace(makeSocket(timeout));
    if (bind(listens->get(), address.get(), address.length) ||
        listen(listens->get(), size))
      failed("a socket of this machine");
    mine.process = getpid();
    mine.address = reinterpret_cast<int64_t>(&mine.token);
#ifdef PR_SET_PTRACER
    // Yama lets a process read its descendants alone, and those whom it allows:
    // the launcher's descendants are the ranks of this machine.
    prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);
#endif
  }
  std::vector<Place> places(size);
  tell([&](int) { return message(mine); },
       [&](int peer) { return message(places[peer]); });
  for (int peer = 0; peer < size; ++peer) {
    const Place &place = places[peer];
    if (peer == own || !place.process || !mine.process)
      continue;
    Token seen{};
    try {
      readMemory(place.process, place.address, seen.data(), sizeof(seen));
      const Address address(place.token);
      Socket socket = makeSocket(timeout);
      if (seen != place.token ||
          connect(socket.get(), address.get(), address.length))
        continue;
      auto channel = std::make_shared<Channel>(std::move(socket));
      channel->process = place.process;
      channel->leastBytes = std::max(mine.leastBytes, place.leastBytes);
      channel->send(&place.token, sizeof(place.token));
      channel->send(&own, sizeof(own));
      reads[peer] = std::move(channel);
    } catch (const std::system_error &) { // the group sends its pieces
    }
  }
  std::vector<char> read(size), isRead(size);
  for (int peer = 0; peer < size; ++peer)
    read[peer] = reads[peer] != nullptr;
  tell([&](int peer) { return message(read[peer]); },
       [&](int peer) { return message(isRead[peer]); });
  for (auto rest = std::count(isRead.begin(), isRead.end(), 1); rest > 0;) {
    auto channel = std::make_shared<Channel>(
        Socket(accept4(listens->get(), nullptr, nullptr, SOCK_CLOEXEC)));
    Token token{};
    int peer = 0;
    channel->receive(&token, sizeof(token));
    channel->receive(&peer, sizeof(peer));
    if (token != mine.token)
      continue; // no rank
    channel->leastBytes = std::max(mine.leastBytes, places.at(peer).leastBytes);
    lends.at(peer) = std::move(channel);
    --rest;
  }
}

PeerMemory::Work PeerMemory::send(const at::Tensor &piece, int peer, int tag) {
  if (!Channel::carries(lends[peer], piece)) {
    std::vector<at::Tensor> tensors{piece};
    return group->send(tensors, peer, tag);
  }
  auto lent = c10::make_intrusive<Lent>();
  lent->piece = piece;
  lent->channel = lends[peer];
  lent->number = ++lent->channel->lent;
  const auto address = reinterpret_cast<int64_t>(piece.data_ptr());
  lent->channel->send(&address, sizeof(address));
  return lent;
}

PeerMemory::Work PeerMemory::receive(const at::Tensor &into, int peer,
                                     int tag) {
  if (!Channel::carries(reads[peer], into)) {
    std::vector<at::Tensor> tensors{into};
    return group->recv(tensors, peer, tag);
  }
  auto read = c10::make_intrusive<Read>();
  read->into = into;
  read->channel = reads[peer];
  {
    std::lock_guard lock(mutex);
    expected.push_back(read);
  }
  changed.notify_one();
  return read;
}

/// One after another: peers send in the order of their collectives, which is
/// this rank's.
void PeerMemory::readAll() {
  for (;;) {
    c10::intrusive_ptr<Read> read;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return ends || !expected.empty(); });
      if (expected.empty())
        return;
      read = std::move(expected.front());
      expected.pop_front();
    }
    read->run();
  }
}

} // namespace accel::run
