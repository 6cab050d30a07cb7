//===- RunFolder.cpp - Whose checkpoints are in a folder ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/RunFolder.h"

#include "runtime/checkpoint/Files.h"
#include "runtime/checkpoint/State.h"
#include "runtime/plan/JsonParse.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sys/file.h>
#include <sys/random.h>
#include <thread>
#include <unistd.h>

namespace accel::run {

namespace fs = std::filesystem;

namespace {

using plan::lockFile;
using plan::runFile;
constexpr const char *prefix = plan::checkpointPrefix;

std::string textOf(const nlohmann::json &object, const char *key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string())
    return "";
  return object[key].get<std::string>();
}

/// run.json of `dir`; null if there is none that accel-run has written.
nlohmann::json readRun(const std::string &dir) {
  const fs::path path = fs::path(dir) / runFile;
  std::error_code code;
  if (!fs::is_regular_file(fs::symlink_status(path, code)))
    return nullptr;
  nlohmann::json json = readObject(path.string());
  const bool own = json.is_object() &&
                   json.value("format", nlohmann::json()) == 1 &&
                   plan::isRunName(textOf(json, "run"));
  return own ? json : nlohmann::json(nullptr);
}

std::string newRun() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
    throw FileError(std::string("no random number for the run's name: ") +
                    std::strerror(errno));
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(bits));
  return text;
}

std::string nameOf(const StoredCheckpoint &checkpoint) {
  return fs::path(checkpoint.path).filename().string();
}

/// The newest of `run`; null if it has none.
const StoredCheckpoint *newestOf(const std::vector<StoredCheckpoint> &all,
                                 const std::string &run) {
  const StoredCheckpoint *newest = nullptr;
  for (const StoredCheckpoint &checkpoint : all)
    if (checkpoint.run == run)
      newest = &checkpoint;
  return newest;
}

bool samePath(const fs::path &a, const fs::path &b) {
  std::error_code code;
  return fs::weakly_canonical(a, code) == fs::weakly_canonical(b, code);
}

/// The checkpoint that the run which wrote last in `dir` goes on from, and that
/// run.
Start newestIn(const std::string &dir,
               const std::vector<StoredCheckpoint> &all) {
  const nlohmann::json last = readRun(dir);
  const std::string run = textOf(last, "run");
  if (run.empty()) {
    for (const StoredCheckpoint &checkpoint : all)
      if (checkpoint.run != all.front().run)
        throw FileError(dir + ": " + nameOf(all.front()) + " and " +
                        nameOf(checkpoint) +
                        " are of different runs, and no run.json says which "
                        "was last; name a checkpoint with --resume PATH");
    return all.empty() ? Start{newRun(), "", ""}
                       : Start{all.back().run, all.back().path, ""};
  }
  if (const StoredCheckpoint *own = newestOf(all, run))
    return {run, own->path, ""};
  const std::string from = textOf(last, "from");
  if (from.empty() && all.empty())
    return {run, "", ""};
  std::error_code code;
  const fs::path origin = fs::path(dir) / from; // absolute: `from` itself
  if (!from.empty() && fs::exists(origin / "state.json", code))
    return {run, origin.lexically_normal().string(), ""};
  std::vector<StoredCheckpoint> sound;
  for (const StoredCheckpoint &checkpoint : all)
    if (!checkpoint.damaged)
      sound.push_back(checkpoint);
  throw FileError(
      dir + ": the run that was here last (" + run + ") has no checkpoint" +
      (from.empty() ? std::string()
                    : ", and what it began from (" + from + ") is gone") +
      (!sound.empty() ? "; name one of " + nameOf(sound.front()) + " to " +
                            nameOf(sound.back()) + " with --resume PATH"
       : all.empty()  ? "; start anew in another folder with --out DIR"
                      : ": " + nameOf(all.back()) +
                            " is damaged; start anew in another folder with "
                            "--out DIR"));
}

/// Names of checkpoints below `dir` that come after the one a run continues
/// from, and are not complete, or are damaged so that nothing in them says
/// whose they are.
std::string passedOver(const std::string &dir, const std::string &from) {
  const std::string last = fs::path(from).filename().string();
  std::string text;
  std::error_code code;
  std::map<std::string, std::string> why; // by name
  for (const fs::directory_entry &entry : fs::directory_iterator(dir, code)) {
    const std::string name = entry.path().filename().string();
    if (!plan::isCheckpointName(name) || (!from.empty() && name <= last))
      continue;
    if (!fs::exists(entry.path() / checkpointMark.file, code))
      why[name] =
          std::string("is not complete (no ") + checkpointMark.file + ")";
    else if (runOf(entry.path().string()).run.empty())
      why[name] = "is damaged, and nothing in it says of which run it is";
  }
  for (const auto &[name, reason] : why)
    text += (text.empty() ? "" : "\n") + name + " is passed over: it " + reason;
  return text;
}

/// What is wrong with a folder that was given to continue from, and holds no
/// complete checkpoint of accel-run.
[[noreturn]] void refuseResume(const std::string &resume) {
  std::error_code code;
  const fs::path folder(resume);
  if (!fs::exists(folder, code))
    throw FileError(resume + ": no such folder to continue from");
  if (!fs::is_directory(folder, code))
    throw FileError(resume + ": is not a folder; --resume takes a checkpoint's "
                             "folder, or one that holds checkpoints");
  // Accelerate's save_state, transformers' Trainer, DeepSpeed,
  // torch.distributed.checkpoint.
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    if (name == ".metadata" || name == "trainer_state.json" ||
        name == "latest" || name == "zero_to_fp32.py" ||
        name.starts_with("random_states_") || name.starts_with("optimizer") ||
        name.starts_with("pytorch_model_fsdp") ||
        name.ends_with("_optim_states.pt"))
      throw FileError(resume + ": is a checkpoint of another program (it has " +
                      name + "); accel-opt checkpoint convert " + resume +
                      " -o OUT --to accel-run makes one to continue from");
  }
  fs::path given = folder.lexically_normal();
  if (!given.has_filename()) // "step-00000008/"
    given = given.parent_path();
  if (plan::isCheckpointName(given.filename().string()))
    throw FileError(resume + ": is not complete (no " + checkpointMark.file +
                    "); continue from another checkpoint");
  throw FileError(resume + ": there is no complete checkpoint");
}

/// " (process 12 on node3)", as the holder of the lock has written it in the
/// first line.
std::string holder(int fd) {
  char text[300];
  const ssize_t size = pread(fd, text, sizeof(text), 0);
  if (size <= 1)
    return "";
  const std::string written(text, static_cast<size_t>(size));
  return " (" + written.substr(0, written.find('\n')) + ")";
}

[[noreturn]] void refuseFolder(const std::string &dir,
                               const std::vector<StoredCheckpoint> &all,
                               const std::string &what) {
  throw FileError(dir + ": holds checkpoints of an earlier run (" +
                  (all.size() > 1 ? nameOf(all.front()) + " to " : "") +
                  nameOf(all.back()) + "), which " + what +
                  " would mix with its own; continue that run with --resume "
                  "auto, give another folder with --out DIR, or remove them");
}

} // namespace

std::string checkpointName(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof(text), "%s%08lld", prefix,
                static_cast<long long>(step));
  return text;
}

void tidy(const std::string &dir) {
  std::error_code code;
  std::vector<fs::path> entries;
  for (const fs::directory_entry &entry : fs::directory_iterator(dir, code))
    entries.push_back(entry.path());
  for (const fs::path &path : entries) {
    const std::string name = path.filename().string();
    const std::string own = plan::withoutSuffixes(name);
    // The next checkpoint of its step removes what is not complete.
    if (!plan::isCheckpointName(own) || name == own ||
        name == own + plan::partialSuffix)
      continue;
    const fs::path base = path.parent_path() / own;
    if (name == own + plan::replacedSuffix &&
        fs::is_directory(fs::symlink_status(path, code)) &&
        fs::exists(path / checkpointMark.file, code) &&
        !fs::exists(base / checkpointMark.file, code)) {
      // What a move has not removed yet.
      removeOwn(base.string(), Made::Checkpoint);
      moveFolder(path.string(), base.string(), checkpointMark);
    } else
      removeOwn(path.string(), Made::Checkpoint);
  }
}

std::string foreignFolder(const std::string &dir) {
  std::error_code code;
  for (const fs::directory_entry &entry : fs::directory_iterator(dir, code)) {
    if (!plan::isCheckpointName(entry.path().filename().string()))
      continue;
    // Shards say whose it is where state.json is damaged.
    if (!fs::is_directory(entry.symlink_status(code)) ||
        (!addedTo(entry.path().string(), Made::Checkpoint).empty() &&
         runOf(entry.path().string()).run.empty()))
      return entry.path().string();
  }
  return "";
}

std::vector<StoredCheckpoint> checkpointsIn(const std::string &dir) {
  std::vector<StoredCheckpoint> found;
  std::error_code code;
  for (const fs::directory_entry &entry : fs::directory_iterator(dir, code)) {
    const std::string name = entry.path().filename().string();
    if (!plan::isCheckpointName(name))
      continue;
    const fs::path state = entry.path() / "state.json";
    if (!fs::exists(state, code))
      continue;
    const CheckpointRun of = runOf(entry.path().string());
    found.push_back({entry.path().string(),
                     std::stoll(name.substr(std::strlen(prefix))), of.run,
                     of.damaged});
  }
  std::sort(found.begin(), found.end(),
            [](const StoredCheckpoint &a, const StoredCheckpoint &b) {
              return a.step != b.step ? a.step < b.step : a.path < b.path;
            });
  return found;
}

Start chooseStart(const std::string &dir, const std::string &resume) {
  std::vector<StoredCheckpoint> here;
  if (!dir.empty())
    here = checkpointsIn(dir);
  if (resume.empty()) {
    if (!here.empty())
      refuseFolder(dir, here, "a run that starts anew");
    return {newRun(), "", ""};
  }
  if (resume == "auto") {
    if (dir.empty())
      throw FileError("--resume auto looks in the job's checkpoint folder, and "
                      "this job has none; give --out");
    Start start = newestIn(dir, here);
    start.note = passedOver(dir, start.checkpoint);
    return start;
  }
  Start start;
  std::error_code code;
  if (fs::exists(fs::path(resume) / "state.json", code)) {
    start.checkpoint = resume;
    start.run = runOf(resume).run;
  } else {
    start = newestIn(resume, checkpointsIn(resume));
    start.note = passedOver(resume, start.checkpoint);
  }
  if (start.checkpoint.empty())
    refuseResume(resume);
  const fs::path given = fs::absolute(start.checkpoint, code);
  start.checkpoint = given.lexically_normal().string();
  if (dir.empty())
    return start;
  const StoredCheckpoint *own = nullptr;
  for (const StoredCheckpoint &checkpoint : here)
    if (samePath(checkpoint.path, given))
      own = &checkpoint;
  if (!own && !here.empty())
    refuseFolder(dir, here, "a run that continues from elsewhere");
  if (own && own == newestOf(here, own->run))
    return start;
  start.run = newRun();
  if (own)
    start.note += std::string(start.note.empty() ? "" : "\n") +
                  "a new run leaves the earlier one at step " +
                  std::to_string(own->step) +
                  "; the later checkpoints of that one stay until this run "
                  "writes the same steps, and --resume auto follows this run";
  return start;
}

FolderLock::FolderLock(const std::string &dir) {
  if (dir.empty())
    return;
  makeFolders(dir);
  const std::string path = (fs::path(dir) / lockFile).string();
  // What a link points to is nothing of the run's, and would be written over.
  fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0 && errno == ELOOP)
    throw FileError(path + ": is a symbolic link, and the lock is a file of "
                           "the folder itself; remove the link");
  if (fd < 0)
    throw FileError(path + ": " + std::strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw FileError(dir + ": another accel-run writes to this folder" +
                    holder(fd) +
                    "; wait for its end, or give another folder "
                    "with --out DIR");
  // Other errors: a file system without locks.
  const std::string own = "process ";
  std::string before(own.size(), '\0');
  const ssize_t size = pread(fd, before.data(), before.size(), 0);
  if (size > 0 && before.substr(0, size) != own)
    throw FileError(path + ": is not the lock of accel-run, which would write "
                           "over it; move it, or give another folder with "
                           "--out DIR");
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  // Processes of two containers may have one number and one host's name.
  text = own + std::to_string(getpid()) + " on " + host + "\nstart " +
         newRun() + "\n";
  if (ftruncate(fd, 0) != 0 ||
      pwrite(fd, text.data(), text.size(), 0) !=
          static_cast<ssize_t>(text.size()) ||
      fsync(fd) != 0)
    text.clear(); // a full disk: what needs room says so
}

FolderLock::~FolderLock() {
  if (fd >= 0)
    ::close(fd);
}

bool awaitMark(const std::string &dir, const std::string &mark,
               std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  for (;;) {
    std::ifstream input(fs::path(dir) / lockFile); // opened: asks the server
    std::string seen(mark.size(), '\0');
    input.read(seen.data(), static_cast<std::streamsize>(seen.size()));
    if (input.gcount() == static_cast<std::streamsize>(mark.size()) &&
        seen == mark)
      return true;
    if (Clock::now() >= end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

bool isRecorded(const std::string &dir) { return readRun(dir).is_object(); }

void recordRun(const std::string &dir, const Start &start) {
  makeFolders(dir);
  const fs::path path = fs::path(dir) / runFile;
  const nlohmann::json last = readRun(dir);
  if (textOf(last, "run") == start.run)
    return;
  if (last.is_null())
    keepAside(path.string(), "is not what accel-run writes");
  nlohmann::ordered_json json = {{"format", 1}, {"run", start.run}};
  if (!start.checkpoint.empty()) {
    // A checkpoint in the same folder by name alone, so that it may be moved.
    const fs::path from(start.checkpoint);
    json["from"] = samePath(from.parent_path(), dir) ? from.filename().string()
                                                     : from.string();
  }
  const std::string temporary = path.string() + plan::partialSuffix;
  std::error_code code;
  if (fs::is_regular_file(fs::symlink_status(temporary, code)))
    removeQuietly(temporary);
  writeTextDurably(temporary, json.dump(2) + "\n");
  renameDurably(temporary, path.string());
}

} // namespace accel::run
