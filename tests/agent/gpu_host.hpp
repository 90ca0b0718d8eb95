#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/host/host.hpp"
#include "agent/put_file.hpp"
#include "agent/source_folder.hpp"

namespace fs = std::filesystem;

namespace remote::agent::test {

// A host with its own home folder and programs, and with this machine's files.
class GpuHost : public testing::Test {
 protected:
  GpuHost() {
    std::string name = (fs::temp_directory_path() / "agent-gpus-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    host = Host::of_this_process();
    host.home = folder / "home";
    host.environment["HOME"] = host.home.string();
    host.environment["SHELL"] = "/bin/sh";
    host.environment["PATH"] = (folder / "bin").string() + ":/usr/local/bin:/usr/bin:/bin";
    fs::create_directories(host.home);
    fs::create_directories(folder / "bin");
  }
  ~GpuHost() override { fs::remove_all(folder); }
  GpuHost(const GpuHost&) = delete;
  GpuHost& operator=(const GpuHost&) = delete;

  static void put(const fs::path& file, const std::string& text) { put_file(file, text); }
  static void put_program(const fs::path& file, const std::string& body) { put_sh_program(file, body); }
  void add_program(const std::string& name, const std::string& body) {
    put_program(folder / "bin" / name, body);
  }
  // The text of a fake nvidia-smi that answers from the files in `data` and logs its arguments.
  std::string pretend_nvidia(const fs::path& data) const {
    return "FAKE_GPUS='" + data.string() + "' FAKE_GPUS_LOG='" + (folder / "asked").string() +
           "'\nexport FAKE_GPUS FAKE_GPUS_LOG\nexec sh '" + test::source_folder +
           "/tests/data/gpus/nvidia-smi.sh' \"$@\"\n";
  }

  fs::path folder;
  Host host;
};

}  // namespace remote::agent::test
