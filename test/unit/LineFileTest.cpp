//===- LineFileTest.cpp - Logs that runs go on with -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/LineFile.h"

#include "runtime/storage/FileError.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace accel::run;

namespace {

/// While it lives, files of this process have at most so many bytes: the disk
/// is full.
class FullAt {
public:
  explicit FullAt(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullAt() { setrlimit(RLIMIT_FSIZE, &before); }

private:
  rlimit before{};
};

class LineFileTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "line-file-XXXXXX";
    ASSERT_TRUE(mkdtemp(name.data()));
    folder = name;
    path = folder / "log";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void put(const std::string &text) const {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return all.str();
  }
  ino_t inode() const {
    struct stat info{};
    stat(path.c_str(), &info);
    return info.st_ino;
  }
  static std::string line(int step) {
    return "{\"step\":" + std::to_string(step) + ",\"loss\":1.0}\n";
  }

  std::filesystem::path folder, path;
};

TEST_F(LineFileTest, BeginsAnew) {
  put(line(1) + line(2));
  LineFile file(path, std::nullopt);
  EXPECT_EQ(file.append(line(1)), "");
  EXPECT_EQ(text(), line(1));
}

TEST_F(LineFileTest, LinesOfEarlierStepsStayWhereTheyAre) {
  put(line(1) + line(2) + line(3) + "{\"step\":4,\"lo");
  const ino_t before = inode();
  LineFile file(path, 2);
  EXPECT_EQ(text(), line(1) + line(2));
  EXPECT_EQ(inode(), before);
  EXPECT_EQ(file.append(line(3)), "");
  EXPECT_EQ(file.close(), "");
  EXPECT_EQ(file.append(line(4)), "");
  EXPECT_EQ(text(), line(1) + line(2) + line(3) + line(4));
}

TEST_F(LineFileTest, LinesBetweenOthersGo) {
  put("no object\n" + line(1) + line(5) + line(2));
  LineFile file(path, 2);
  EXPECT_EQ(file.append(line(3)), "");
  EXPECT_EQ(text(), line(1) + line(2) + line(3));
  put(line(1) + line(2).substr(0, line(2).size() - 1)); // no end of the line
  EXPECT_EQ(LineFile(path, 2).append(line(3)), "");
  EXPECT_EQ(text(), line(1) + line(2) + line(3));
}

TEST_F(LineFileTest, AFullDiskTakesNoLineOfAnEarlierRun) {
  const std::string prefix = line(1) + line(2), all = prefix + line(9);
  put(all);
  {
    const FullAt full(all.size() - line(1).size());
    LineFile file(path, 2);
    EXPECT_EQ(text(), prefix);
    EXPECT_NE(file.append(line(3)).find("File too large"), std::string::npos);
  }
  EXPECT_EQ(text(), prefix);
  // Lines that have to be written anew: before training begins.
  put(line(9) + prefix);
  {
    const FullAt full(line(1).size());
    EXPECT_THROW(LineFile(path, 2), FileError);
  }
  EXPECT_EQ(text(), line(9) + prefix);
}

TEST_F(LineFileTest, NoHalfLineIsLeft) {
  LineFile file(path, std::nullopt);
  EXPECT_EQ(file.append(line(1)), "");
  {
    const FullAt full(line(1).size() + 5);
    EXPECT_NE(file.append(line(2)).find("File too large"), std::string::npos);
  }
  EXPECT_EQ(file.append(line(3)), "");
  EXPECT_EQ(text(), line(1) + line(3));
}

TEST_F(LineFileTest, OneRunWritesToAFile) {
  const std::string refused = "--log " + path.string() +
                              ": another accel-run writes to this file; wait "
                              "for its end, or give another one";
  auto take = [&]() -> std::string {
    try {
      LineLock("--log", path, "give another one");
    } catch (const FileError &error) {
      return error.what();
    }
    return "";
  };
  put(line(9) + line(1)); // lines that are written anew, in another file
  {
    LineLock lock("--log", path, "");
    EXPECT_EQ(take(), refused);
    EXPECT_EQ(text(), line(9) + line(1));
    const ino_t before = inode();
    LineFile file(path, 2, &lock);
    EXPECT_NE(inode(), before);
    EXPECT_EQ(take(), refused);
    EXPECT_EQ(file.append(line(2)), "");
    EXPECT_EQ(file.close(), "");
    EXPECT_EQ(take(), refused);
    const ino_t anew = inode();
    EXPECT_EQ(file.amendLast(
                  [](nlohmann::ordered_json &json) { json["eval_loss"] = 2; }),
              "");
    EXPECT_NE(inode(), anew);
    EXPECT_EQ(take(), refused);
    {
      const FullAt full(3); // it is not replaced
      EXPECT_NE(file.amendLast([](nlohmann::ordered_json &) {}), "");
    }
    EXPECT_EQ(take(), refused);
  }
  EXPECT_EQ(take(), "");
  const LineLock device("--log", "/dev/null", ""); // is everybody's
  LineLock("--log", "/dev/null", "");
  LineLock("--log", folder / "none" / "log", "");
  LineLock("--log", "", "");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  LineLock("--log", folder / "pipe", ""); // does not wait for its reader
}

TEST_F(LineFileTest, AFileThatCannotBeReadIsNotReplaced) {
  EXPECT_THROW(LineFile(folder, 2), FileError);
  EXPECT_THROW(LineFile(folder / "none" / "log", 2), FileError);
  EXPECT_THROW(LineFile(folder / "none" / "log", std::nullopt), FileError);
}

} // namespace
