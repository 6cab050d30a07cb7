//===- FileIoTest.cpp - What is said where a disk is full -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/FileIo.h"
#include "frontends/Checkpoint/OrderedReader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace accel;
using namespace accel::checkpoint;

namespace fs = std::filesystem;

namespace {

TEST(FileIo, AFullDiskIsNamedWithTheBytes) {
  DiagnosticEngine diagnostics;
  File file("/dev/full", O_WRONLY);
  ASSERT_TRUE(file.good());
  EXPECT_FALSE(file.write("x", 0));
  EXPECT_FALSE(reportUnwritten("out/a", 1234, diagnostics));
  ASSERT_EQ(diagnostics.all().size(), 1u);
  const Diagnostic &said = diagnostics.all()[0];
  EXPECT_EQ(said.code, "write-failed");
  EXPECT_EQ(said.file, "out/a");
  EXPECT_EQ(said.message, "No space left on device");
  EXPECT_EQ(said.hint, "the tensors take 1234 bytes");
}

TEST(FileIo, OtherErrorsHaveNoBytes) {
  DiagnosticEngine diagnostics;
  EXPECT_FALSE(File("/dev/null/a", O_WRONLY).good());
  EXPECT_FALSE(reportUnwritten("out/a", 1234, diagnostics));
  ASSERT_EQ(diagnostics.all().size(), 1u);
  EXPECT_EQ(diagnostics.all()[0].message, "Not a directory");
  EXPECT_EQ(diagnostics.all()[0].hint, "");
}

/// A tensor that pieces cut by columns is put in order in a file beside.
TEST(FileIo, AFullDiskUnderTheScratchFile) {
  const std::string folder = ::testing::TempDir() + "full-scratch";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder + "/data") << "0123456789abcdef";
  fs::create_symlink("/dev/full", folder + "/scratch");
  Tensor tensor;
  tensor.name = "w";
  tensor.dtype = "float32";
  tensor.shape = {2, 2};
  tensor.bytes = 16;
  for (int64_t column : {0, 1}) {
    Piece piece;
    piece.file = folder + "/data";
    piece.begin = 8 * column;
    piece.length = 8;
    piece.offsets = {0, column};
    piece.sizes = {2, 1};
    tensor.pieces.push_back(piece);
  }
  DiagnosticEngine diagnostics;
  OrderedReader reader(folder + "/scratch", 77, diagnostics);
  EXPECT_FALSE(reader.read(tensor, [](std::string_view) { return true; }));
  ASSERT_EQ(diagnostics.all().size(), 1u);
  EXPECT_EQ(diagnostics.all()[0].message, "No space left on device");
  EXPECT_EQ(diagnostics.all()[0].hint, "the tensors take 77 bytes");
  fs::remove_all(folder);
}

} // namespace
