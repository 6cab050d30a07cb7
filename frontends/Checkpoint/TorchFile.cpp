//===- TorchFile.cpp - Files of torch.save of many tensors ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/TorchFile.h"

#include <cerrno>

namespace accel::checkpoint {

bool writeTorchFile(const std::string &path, int64_t folderBytes,
                    DiagnosticEngine &diagnostics,
                    const TorchFile::Make &make) {
  OrderedReader reader(path + ".scratch", folderBytes, diagnostics);
  TorchFile made;
  made.out.emptyDict();
  made.out.mark();
  make(made, reader);
  made.out.items();
  errno = 0;
  File file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (file.good() && writeTorchZip(file, 0, made.out.finish(), made.storages) &&
      file.sync() && reader.verify())
    return true;
  return !diagnostics.hasErrors() &&
         reportUnwritten(path, folderBytes, diagnostics);
}

} // namespace accel::checkpoint
