//===- TransferQueueTest.cpp - A rank's file and its transfers ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/storage/TransferQueue.h"
#include "runtime/plan/DiskLayout.h"
#include "runtime/storage/FileError.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <memory>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

using namespace accel;
using namespace accel::run;

/// Threads that can be started before one cannot; below 0: all can.
static int threadsLeft = -1;
extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *how,
                              void *(*run)(void *), void *with) {
  if (threadsLeft >= 0 && --threadsLeft < 0)
    return EAGAIN;
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(
      dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, how, run, with);
}

namespace {

constexpr auto page = static_cast<size_t>(plan::diskAlignment);

struct Free {
  void operator()(char *memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, Free>;

Memory makeMemory(size_t bytes, unsigned seed) {
  Memory memory(static_cast<char *>(std::aligned_alloc(page, bytes)));
  for (size_t i = 0; i < bytes; ++i)
    memory.get()[i] = static_cast<char>((i * 31 + i / 251 + seed) & 0xff);
  return memory;
}

std::string folder(const char *name) {
  std::string path =
      testing::TempDir() + "transfers-" + name + "-" + std::to_string(getpid());
  std::filesystem::remove_all(path);
  return path;
}

/// What `work` throws as a FileError; empty: nothing.
template <typename Work> std::string failureOf(Work work) {
  try {
    work();
  } catch (const FileError &failure) {
    return failure.what();
  }
  return "";
}

class Transfers : public testing::TestWithParam<DiskIo> {
protected:
  void SetUp() override {
    std::string why;
    const ScratchFile file(folder("probe"), 0, plan::diskAlignment);
    if (GetParam() == DiskIo::Uring &&
        !makeUringQueue(file, {.io = DiskIo::Uring}, why))
      GTEST_SKIP() << why;
  }
  QueueSettings settings() const {
    return {.io = GetParam(),
            .blockBytes = 3 * plan::diskAlignment,
            .depth = 4,
            .threads = 3};
  }
};

TEST_P(Transfers, GiveBackWhatWasWritten) {
  constexpr size_t bytes = 50 * page, places = 8;
  const ScratchFile file(folder("bytes"), 3,
                         static_cast<int64_t>(bytes * places));
  EXPECT_EQ(file.bytes(), static_cast<int64_t>(bytes * places));
  auto queue = TransferQueue::make(file, settings());
  EXPECT_STREQ(queue->name(),
               GetParam() == DiskIo::Uring ? "io_uring" : "threads");
  // All at once, in an order of their own.
  std::vector<Memory> written, read;
  std::vector<TransferQueue::Ticket> tickets;
  for (size_t i = 0; i < places; ++i) {
    written.push_back(makeMemory(bytes, static_cast<unsigned>(i)));
    tickets.push_back(queue->write(static_cast<int64_t>(i * 5 % places * bytes),
                                   written[i].get(),
                                   static_cast<int64_t>(bytes)));
  }
  for (TransferQueue::Ticket &ticket : tickets) {
    queue->wait(ticket);
    EXPECT_FALSE(ticket);
    queue->wait(ticket); // done already
  }
  for (size_t i = 0; i < places; ++i) {
    read.push_back(makeMemory(bytes, 99));
    tickets[i] = queue->read(static_cast<int64_t>(i * 5 % places * bytes),
                             read[i].get(), static_cast<int64_t>(bytes));
  }
  for (size_t i = 0; i < places; ++i) {
    queue->wait(tickets[i]);
    EXPECT_EQ(std::memcmp(written[i].get(), read[i].get(), bytes), 0) << i;
  }
}

TEST_P(Transfers, ANewFileHasZeros) {
  const ScratchFile file(folder("zeros"), 0, 16 * plan::diskAlignment);
  auto queue = TransferQueue::make(file, settings());
  const Memory memory = makeMemory(16 * page, 7);
  auto ticket = queue->read(0, memory.get(), 16 * plan::diskAlignment);
  queue->wait(ticket);
  for (size_t i = 0; i < 16 * page; ++i)
    ASSERT_EQ(memory.get()[i], 0) << i;
}

/// The same in memory and places that are no multiples of a page.
TEST_P(Transfers, GoThroughTheCacheToo) {
  ScratchFile file(folder("cached"), 0, 4 * plan::diskAlignment);
  file.leaveDirect();
  EXPECT_FALSE(file.isDirect());
  auto queue = TransferQueue::make(file, settings());
  const Memory from = makeMemory(page, 1), into = makeMemory(page, 2);
  auto ticket = queue->write(5, from.get() + 1, 1000);
  queue->wait(ticket);
  ticket = queue->read(5, into.get() + 3, 1000);
  queue->wait(ticket);
  EXPECT_EQ(std::memcmp(from.get() + 1, into.get() + 3, 1000), 0);
}

TEST_P(Transfers, SayWhichFileIsFull) {
  const ScratchFile full(open("/dev/full", O_RDWR | O_CLOEXEC),
                         "/mnt/nvme: the file for states of rank 5");
  auto queue = TransferQueue::make(full, settings());
  const Memory memory = makeMemory(8 * page, 1);
  auto ticket = queue->write(0, memory.get(), 8 * plan::diskAlignment);
  const std::string failure = failureOf([&] { queue->wait(ticket); });
  EXPECT_NE(failure.find("/mnt/nvme: the file for states of rank 5: cannot "
                         "write 12288 bytes at "),
            std::string::npos)
      << failure;
  EXPECT_NE(failure.find("No space left on device"), std::string::npos)
      << failure;
  // The queue goes on.
  ticket = queue->read(0, memory.get(), plan::diskAlignment);
  EXPECT_EQ(failureOf([&] { queue->wait(ticket); }), "");
}

TEST_P(Transfers, SayWhichFileCannotBeRead) {
  // Nothing is mapped at 0.
  const ScratchFile broken(open("/proc/self/mem", O_RDONLY | O_CLOEXEC), "r0");
  auto queue = TransferQueue::make(broken, settings());
  const Memory memory = makeMemory(page, 1);
  auto ticket = queue->read(0, memory.get(), plan::diskAlignment);
  EXPECT_EQ(failureOf([&] { queue->wait(ticket); }),
            "r0: cannot read 4096 bytes at 0: Input/output error");
}

TEST_P(Transfers, SayThatAFileIsTooShort) {
  const ScratchFile file(folder("short"), 0, 2 * plan::diskAlignment);
  auto queue = TransferQueue::make(file, settings());
  const Memory memory = makeMemory(4 * page, 1);
  auto ticket =
      queue->read(plan::diskAlignment, memory.get(), 3 * plan::diskAlignment);
  const std::string failure = failureOf([&] { queue->wait(ticket); });
  EXPECT_NE(failure.find("the file ends before"), std::string::npos) << failure;
}

/// What is under way ends before a queue does.
TEST_P(Transfers, EndWithTheirQueue) {
  const ScratchFile file(folder("end"), 0, 64 * plan::diskAlignment);
  const Memory memory = makeMemory(64 * page, 5),
               read = makeMemory(64 * page, 6);
  {
    auto queue = TransferQueue::make(file, settings());
    queue->write(0, memory.get(), 64 * plan::diskAlignment);
  }
  auto queue = TransferQueue::make(file, settings());
  auto ticket = queue->read(0, read.get(), 64 * plan::diskAlignment);
  queue->wait(ticket);
  EXPECT_EQ(std::memcmp(memory.get(), read.get(), 64 * page), 0);
}

INSTANTIATE_TEST_SUITE_P(Both, Transfers,
                         testing::Values(DiskIo::Uring, DiskIo::Threads),
                         [](const auto &info) {
                           return info.param == DiskIo::Uring ? "IoUring"
                                                              : "Threads";
                         });

/// As containers do: the system call fails, here with EPERM.
bool forbidUring() {
  sock_filter instructions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(instructions), instructions};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// In a process of its own, which stays without io_uring; it says what is
/// wrong.
TEST(Uring, ThreadsTakeItsPlaceWhereTheKernelForbidsIt) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!forbidUring())
      _exit(77);
    const ScratchFile file(folder("forbidden"), 0, 4 * plan::diskAlignment);
    auto queue = TransferQueue::make(file, {});
    if (std::string(queue->name()) != "threads")
      _exit(1);
    const Memory from = makeMemory(4 * page, 1), into = makeMemory(4 * page, 2);
    auto ticket = queue->write(0, from.get(), 4 * plan::diskAlignment);
    queue->wait(ticket);
    ticket = queue->read(0, into.get(), 4 * plan::diskAlignment);
    queue->wait(ticket);
    if (std::memcmp(from.get(), into.get(), 4 * page) != 0)
      _exit(2);
    const std::string failure =
        failureOf([&] { TransferQueue::make(file, {.io = DiskIo::Uring}); });
    std::fprintf(stderr, "%s\n", failure.c_str());
    _exit(failure.find("io_uring does not work here: ") == 0 &&
                  failure.find("--disk-io threads needs none") !=
                      std::string::npos
              ? 0
              : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "this machine filters no system calls";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ScratchFile, LeavesNothingBehind) {
  const std::string path = folder("gone");
  const ScratchFile file(path, 0, plan::diskAlignment);
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST(TransferQueue, AThreadThatCannotBeStartedIsAnError) {
  const ScratchFile file(folder("threads"), 0, 1 << 16);
  QueueSettings settings;
  settings.io = DiskIo::Threads;
  for (const int most : {0, 1, 3}) {
    threadsLeft = most;
    EXPECT_THROW(TransferQueue::make(file, settings), std::system_error);
  }
  threadsLeft = -1;
  EXPECT_NE(TransferQueue::make(file, settings), nullptr);
}

TEST(ScratchFile, SaysHowMuchRoomThereIs) {
  const std::string path = folder("room");
  std::filesystem::create_directories(path);
  struct statvfs system = {};
  ASSERT_EQ(statvfs(path.c_str(), &system), 0);
  const auto bytes = static_cast<int64_t>(system.f_bavail * system.f_frsize) +
                     (int64_t(1) << 33);
  const std::string failure =
      failureOf([&] { const ScratchFile file(path, 7, bytes); });
  EXPECT_EQ(failure.find(path + ": the file for states of rank 7 takes "), 0U)
      << failure;
  EXPECT_NE(failure.find(" takes " + std::to_string(bytes) + " bytes, and "),
            std::string::npos)
      << failure;
  EXPECT_NE(failure.find(" are free there: make room in " + path),
            std::string::npos)
      << failure;
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST(ScratchFile, SaysWhereItCannotBe) {
  const std::string failure =
      failureOf([] { const ScratchFile file("/proc/none", 2, 4096); });
  EXPECT_EQ(failure.find("/proc/none: cannot be made for states of rank 2: "),
            0U)
      << failure;
}

} // namespace
