#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace remote::agent::test {

// Writes a file. Removes a link with the same name first, because it may point to a program of this machine.
inline void put_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  if (std::filesystem::is_symlink(path)) {
    std::filesystem::remove(path);
  }
  std::ofstream(path, std::ios::binary) << text;
}

// Writes a shell script.
inline void put_sh_program(const std::filesystem::path& path, const std::string& text) {
  put_file(path, "#!/bin/sh\n" + text + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

}  // namespace remote::agent::test
