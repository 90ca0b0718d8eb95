#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "agent/host/host.hpp"
#include "agent/put_file.hpp"

namespace fs = std::filesystem;

namespace remote::agent::test {

// A host whose system files and home folder are in a temporary folder.
class HostFolder {
 public:
  HostFolder() {
    std::string name = fs::temp_directory_path() / "remote-agent-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("cannot create a temporary folder");
    }
    folder_ = fs::canonical(name);
    host = Host::of_this_process();
    host.root = folder_ / "the root";
    host.home = folder_ / "my home";
    host.shared_memory = folder_ / "shm";
    fs::create_directories(host.home);
    fs::create_directories(host.root);
  }
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;
  ~HostFolder() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  const fs::path& path() const { return folder_; }
  // Writes a file and creates its parent folders.
  static void put(const fs::path& path, const std::string& text) { put_file(path, text); }
  // Writes a system file, such as "proc/meminfo".
  void put_system(const std::string& path, const std::string& text) const { put(host.root / path, text); }
  void put_program(const fs::path& path, const std::string& text) const { put_sh_program(path, text); }

  Host host;

 private:
  fs::path folder_;
};

}  // namespace remote::agent::test
