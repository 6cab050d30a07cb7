//===- TorchFile.cpp - Files of torch.save of many tensors ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/TorchFile.h"

#include <cerrno>
#include <cstring>

namespace accel::checkpoint {

bool writeTorchFile(const std::string &path, DiagnosticEngine &diagnostics,
                    const TorchFile::Make &make) {
  OrderedReader reader(path + ".scratch", diagnostics);
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
  if (!diagnostics.hasErrors())
    diagnostics.error("write-failed", path, std::strerror(errno));
  return false;
}

} // namespace accel::checkpoint
