#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "agent/host/host.hpp"
#include "agent/put_file.hpp"

namespace remote::agent {

namespace fs = std::filesystem;

namespace test {

// A host with this machine's programs, whose system files are in a temporary folder.
class FakeHost {
 public:
  FakeHost() : folder_(make_folder()), host(Host::of_this_process()) {
    host.root = root();
    host.home = home();
    fs::create_directories(home());
    fs::create_directories(programs());
    host.environment["HOME"] = home();
    host.environment["PATH"] = programs().string() + ":" + host.variable("PATH");
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  ~FakeHost() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  const fs::path& folder() const { return folder_; }
  fs::path root() const { return folder_ / "the root"; }
  fs::path home() const { return folder_ / "home"; }
  // The first folder on PATH.
  fs::path programs() const { return folder_ / "programs"; }

  static void put(const fs::path& path, const std::string& text) { put_file(path, text); }
  static void put_program(const fs::path& path, const std::string& text) { put_sh_program(path, text); }

 private:
  static fs::path make_folder() {
    std::string name = fs::temp_directory_path() / "remote-agent-XXXXXX";
    return ::mkdtemp(name.data());
  }

  fs::path folder_;

 public:
  Host host;
};

}  // namespace test
}  // namespace remote::agent
