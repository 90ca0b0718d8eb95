#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "support/paths.hpp"

namespace remote::test {

// Compares with tests/unit/golden/NAME; REMOTE_UPDATE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(source_folder) / "tests/unit/golden" / name;
  if (std::getenv("REMOTE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << text;
  }
  EXPECT_EQ(text, read_file(file));
}

}  // namespace remote::test
