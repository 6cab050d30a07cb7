//===- TorchExportArchiveTest.cpp - Zips as minizip reads them ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Archive.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <minizip/zip.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

using namespace accel::torchexport;

namespace {

/// A file that is removed with the test.
struct Scratch {
  std::string path = (std::filesystem::temp_directory_path() /
                      ("accel-opt-archive-" + std::to_string(getpid())))
                         .string();
  ~Scratch() { std::filesystem::remove(path); }
};

std::string contents(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A zip of one entry, m/text; `zip64`: with sizes of 8 bytes.
std::string zipOf(const std::string &text, int method, bool zip64 = false) {
  Scratch file;
  zipFile zip = zipOpen64(file.path.c_str(), APPEND_STATUS_CREATE);
  EXPECT_EQ(zipOpenNewFileInZip64(zip, "m/text", nullptr, nullptr, 0, nullptr,
                                  0, nullptr, method, 6, zip64),
            ZIP_OK);
  EXPECT_EQ(zipWriteInFileInZip(zip, text.data(), unsigned(text.size())),
            ZIP_OK);
  EXPECT_EQ(zipCloseFileInZip(zip), ZIP_OK);
  EXPECT_EQ(zipClose(zip, nullptr), ZIP_OK);
  return contents(file.path);
}

std::string someText(size_t size) {
  std::string text(size, ' ');
  for (size_t i = 0; i < size; ++i)
    text[i] = char('a' + i * i % 23);
  return text;
}

constexpr int64_t limit = 1 << 30;

/// What reading m/text says of such a zip.
std::string errorOf(const std::string &zip) {
  std::string error;
  auto archive = Archive::openMemory(zip, error);
  if (archive && archive->read("text", limit, error))
    return "read";
  return error;
}

/// The zip with two bytes of both headers of its entry set; the offset is that
/// in the entry's own header, 2 less than that in the directory's.
std::string patched(std::string zip, size_t offset, int value) {
  for (size_t header :
       {zip.find("PK\3\4") + offset, zip.find("PK\1\2") + offset + 2}) {
    zip[header] = char(value);
    zip[header + 1] = 0;
  }
  return zip;
}

TEST(TorchExportArchive, StoredPackedAndZip64AreRead) {
  const std::string text = someText(300'000);
  for (int method : {0, Z_DEFLATED})
    for (bool zip64 : {false, true}) {
      const std::string zip = zipOf(text, method, zip64);
      std::string error;
      auto archive = Archive::openMemory(zip, error);
      ASSERT_TRUE(archive) << error;
      EXPECT_EQ(archive->root(), "m");
      EXPECT_EQ(archive->entries().at("text").stored, method == 0);
      EXPECT_EQ(archive->read("text", limit, error), text) << error;
      EXPECT_EQ(archive->read("text", limit, error), text) << error; // again
    }
}

TEST(TorchExportArchive, APartOfAFileIsRead) {
  const std::string text = someText(200'000), zip = zipOf(text, 0);
  Scratch file;
  std::ofstream(file.path, std::ios::binary)
      << someText(70'001) << zip << someText(99);
  std::string error, got;
  auto archive =
      Archive::openRange(file.path, 70'001, int64_t(zip.size()), error);
  ASSERT_TRUE(archive) << error;
  EXPECT_EQ(archive->read("text", limit, error), text) << error;
  auto keep = [&](std::string_view piece) {
    got += piece;
    return true;
  };
  EXPECT_TRUE(archive->stream("text", 131'000, 500, keep, error)) << error;
  EXPECT_EQ(got, text.substr(131'000, 500));
  EXPECT_FALSE(archive->stream("text", 199'999, 2, keep, error));
  EXPECT_EQ(error, "'text' has 200000 bytes, and more are asked of it");
  EXPECT_FALSE(Archive::openRange(file.path, 70'001, 1000, error));
  EXPECT_EQ(error, "no zip archive that can be read: Not a zip archive");
  EXPECT_FALSE(Archive::openRange(file.path, limit, 1000, error));
}

void put(std::string &bytes, uint64_t value, int width) {
  for (int i = 0; i < width; ++i)
    bytes += char(value >> (8 * i));
}

/// A header of an entry, its own or with `offset` the directory's: fields that
/// are given as 2^32 - 1 stand in `extra`.
std::string headerOf(const std::string &name, uint32_t checksum, uint64_t bytes,
                     const std::string &extra, std::optional<uint64_t> offset) {
  std::string made = offset ? "PK\1\2" : "PK\3\4";
  put(made, 45, offset ? 4 : 2); // versions; flags, method, time and date: 0
  put(made, 0, 8);
  put(made, checksum, 4);
  put(made, bytes, 4);
  put(made, bytes, 4);
  put(made, name.size(), 2);
  put(made, extra.size(), 2);
  if (offset) {
    put(made, 0, 10); // comment, disk, attributes
    put(made, *offset, 4);
  }
  return made + name + extra;
}

/// Files beyond 4 GiB have 64-bit fields, which minizip 1.1 does not read.
TEST(TorchExportArchive, WideFieldsAreRead) {
  const std::string text = someText(1000);
  const auto checksum = uint32_t(
      crc32_z(0, reinterpret_cast<const Bytef *>(text.data()), text.size()));
  const uint64_t far = uint64_t(5) << 30; // behind a hole
  std::string sizes, wide;
  put(sizes, 1, 2);
  put(sizes, 16, 2);
  put(sizes, text.size(), 8);
  put(sizes, text.size(), 8);
  wide = sizes;
  wide[2] = 24;
  put(wide, far, 8);
  const uint64_t none = UINT32_MAX;
  const std::string entry = headerOf("m/far", checksum, none, sizes, {}) + text;
  const std::string record = headerOf("m/far", checksum, none, wide, none);
  const uint64_t directory = far + entry.size();
  std::string end = "PK\6\6";
  put(end, 44, 8);
  put(end, 45, 2);
  put(end, 45, 2);
  put(end, 0, 8); // disks
  put(end, 1, 8); // entries
  put(end, 1, 8);
  put(end, record.size(), 8);
  put(end, directory, 8);
  end += "PK\6\7";
  put(end, 0, 4);
  put(end, directory + record.size(), 8);
  put(end, 1, 4);
  end += "PK\5\6";
  put(end, 0, 4);
  put(end, 1, 2);
  put(end, 1, 2);
  put(end, record.size(), 4);
  put(end, none, 4);
  put(end, 0, 2);
  Scratch file;
  {
    std::ofstream out(file.path, std::ios::binary);
    out.seekp(std::streamoff(far));
    out << entry << record << end;
  }
  std::string error, got;
  auto archive = Archive::open(file.path, error);
  ASSERT_TRUE(archive) << error;
  EXPECT_EQ(archive->entries().at("far").bytes, int64_t(text.size()));
  EXPECT_EQ(archive->read("far", limit, error), text) << error;
  auto keep = [&](std::string_view piece) {
    got += piece;
    return true;
  };
  EXPECT_TRUE(archive->stream("far", 100, 50, keep, error)) << error;
  EXPECT_EQ(got, text.substr(100, 50));
  // A byte that has changed, and a header that is not there.
  for (uint64_t place : {far + entry.size() - 1, far}) {
    {
      std::fstream out(file.path,
                       std::ios::binary | std::ios::in | std::ios::out);
      out.seekp(std::streamoff(place));
      out << '!';
    }
    auto damaged = Archive::open(file.path, error);
    ASSERT_TRUE(damaged) << error;
    EXPECT_FALSE(damaged->read("far", limit, error));
    EXPECT_EQ(error, place == far ? "'far' cannot be opened: it has no header"
                                  : "'far' is cut or damaged: CRC error");
  }
}

TEST(TorchExportArchive, WhatIsNoZipIsTold) {
  Scratch file;
  std::string error;
  EXPECT_FALSE(Archive::open(file.path, error));
  EXPECT_EQ(error, "no zip archive that can be read: No such file or "
                   "directory");
  ASSERT_EQ(mkfifo(file.path.c_str(), 0600), 0);
  EXPECT_FALSE(Archive::open(file.path, error)); // and nobody writes to it
  EXPECT_EQ(error, "no zip archive that can be read: Not a regular file");
}

TEST(TorchExportArchive, DamageIsTold) {
  const std::string zip = zipOf(someText(5000), 0);
  EXPECT_EQ(errorOf(zip), "read");
  EXPECT_EQ(errorOf(patched(zip, 6, 1)),
            "entry 'text' cannot be opened: it is encrypted");
  EXPECT_EQ(errorOf(patched(zip, 8, 12)),
            "entry 'text' cannot be opened: Compression method 12 not "
            "supported");
  std::string wrong = zip;
  wrong[200] ^= 1;
  EXPECT_EQ(errorOf(wrong), "entry 'text' is damaged: CRC error");
  wrong = zip;
  wrong[0] = 'Q'; // the entry's own header
  EXPECT_EQ(errorOf(wrong),
            "entry 'text' cannot be opened: Zip archive inconsistent");
  wrong = zip;
  wrong[zip.find("PK\1\2")] = 'Q'; // the directory
  EXPECT_EQ(errorOf(wrong), "entry 0 of the zip is damaged");
  wrong = zip;
  wrong[zip.rfind("PK\5\6") + 10] = 9; // its number of entries
  wrong[zip.rfind("PK\5\6") + 8] = 9;
  EXPECT_EQ(errorOf(wrong), "entry 1 of the zip is damaged");
  std::string packed = zipOf(someText(5000), Z_DEFLATED);
  packed[45] = char(~packed[45]);
  EXPECT_EQ(errorOf(packed).rfind("entry 'text' is ", 0), 0u)
      << errorOf(packed);
}

} // namespace
