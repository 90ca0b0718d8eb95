#include <string>

#include <sys/utsname.h>
#include <unistd.h>

#include "agent/job/hash_file.hpp"
#include "agent/job/regular_file.hpp"
#include "agent/provision/failure.hpp"
#include "agent/provision/make_environment.hpp"
#include "agent/provision/temporary_file.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

bool download(Steps& steps, const std::string& url, const std::string& file) {
  constexpr const char* code =
      "import shutil, sys, urllib.request\n"
      "with urllib.request.urlopen(sys.argv[1]) as source, open(sys.argv[2], 'wb') as target:\n"
      "    shutil.copyfileobj(source, target)\n";
  const auto has = [&](const char* program) { return !steps.host().find_program(program).empty(); };
  if (has("curl")) {
    return steps.run({"curl", "-fsSL", "--retry", "2", "-o", file, url});
  }
  if (has("wget")) {
    return steps.run({"wget", "-q", "-O", file, url});
  }
  if (has("python3")) {
    return steps.run({"python3", "-c", code, url, file});
  }
  throw ProvisionError("nothing to download with: neither curl, wget nor python3",
                       "install one of them on the server");
}

}  // namespace

CondaInstaller choose_installer(const std::string& machine, const wire::Setup& setup) {
  const bool is_x86 = machine == "x86_64";
  if (!is_x86 && machine != "aarch64") {
    throw ProvisionError("there is no Miniconda for this server's architecture, " + machine,
                         "set python: {manager: venv} in configs.yaml");
  }
  const std::string& sha256 = is_x86 ? setup.conda_sha256_x86_64 : setup.conda_sha256_aarch64;
  if (sha256.empty() && !(setup.conda_sha256_x86_64 + setup.conda_sha256_aarch64).empty()) {
    throw ProvisionError(
        "miniconda_sha256 in configs.yaml has no digest for this server's architecture, " + machine,
        "add one: miniconda_sha256: {" + machine + ": …}");
  }
  return {.url = replace_all(setup.conda_url, "{arch}", machine), .sha256 = sha256};
}

void install_conda(Steps& steps, const PythonPlace& place, const wire::Setup& setup) {
  utsname system{};
  ::uname(&system);
  const auto [url, sha256] = choose_installer(system.machine, setup);
  const std::string conda = place.conda();
  const std::string unfinished = conda + ".unfinished";
  const UnfinishedEnvironment environment(place);
  environment.begin();
  if (!put_open_file(unfinished, "")) {
    throw ProvisionError("cannot write " + unfinished);
  }
  const TemporaryFile installer(conda + ".installer." + std::to_string(::getpid()) + ".sh");
  steps.begin("downloading Miniconda");
  if (!download(steps, url, installer.path())) {
    ::unlink(unfinished.c_str());
    environment.end();
    throw ProvisionError("cannot download " + url,
                         "in configs.yaml, python: {manager: venv} or {manager: system} needs no download; "
                         "miniconda_url names a mirror");
  }
  const std::string found = hash_file(RegularFile(installer.path()));
  if (!sha256.empty() && found != sha256) {
    throw ProvisionError(
        "the installer from " + url + " has SHA-256 " + found + ", not " + sha256,
        "correct miniconda_sha256 in configs.yaml if the installer is meant to be a newer one");
  }
  steps.begin("installing Miniconda");
  const bool has_bash = !steps.host().find_program("bash").empty();
  if (!steps.run({has_bash ? "bash" : "sh", installer.path(), "-b", "-p", conda})) {
    throw ProvisionError("the Miniconda installer failed");
  }
  if (!steps.run({place.conda() / "bin/conda", "--version"})) {
    throw ProvisionError("the Miniconda installer made no working conda");
  }
  ::unlink(unfinished.c_str());
}

}  // namespace remote::agent
