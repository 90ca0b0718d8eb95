#pragma once

#include <string>

#include "agent/provision/python_place.hpp"
#include "agent/provision/steps.hpp"
#include "wire/provision.hpp"

namespace remote::agent {

// Creates the environment of `place`, unless it is already set up. Throws ProvisionError.
void make_environment(Steps& steps, const PythonPlace& place, const wire::Setup& setup);

// Records that make_environment() has started, so that an incomplete environment is recognized.
class UnfinishedEnvironment {
 public:
  explicit UnfinishedEnvironment(const PythonPlace& place) : place_(place) {}

  // Throws ProvisionError.
  void begin() const;
  bool has_begun() const;
  void end() const;

 private:
  Path file() const { return place_.scripts() / "setup.unfinished"; }

  const PythonPlace& place_;
};

struct CondaInstaller {
  std::string url;
  std::string sha256;  // "": not checked
};

// Returns Miniconda's installer for the machine type that uname(2) reports. Throws ProvisionError if there is
// none, or if `setup` has digests but none for this one.
CondaInstaller choose_installer(const std::string& machine, const wire::Setup& setup);

// Installs Miniconda to the folder of `place`. Throws ProvisionError.
void install_conda(Steps& steps, const PythonPlace& place, const wire::Setup& setup);

}  // namespace remote::agent
