#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/events.hpp>

#include "wire/facts.hpp"
#include "wire/fields.hpp"
#include "wire/source.hpp"
#include "wire/variable.hpp"

// Prepares the project's Python environment on a server: setup and update-packages.

namespace remote::wire {

constexpr std::size_t max_packages = 1000;
constexpr std::size_t max_package_files = 100'000;
constexpr Limits digest_limit = a_word("", 64);

enum class PythonManager { conda, venv, uv, system };

// The environment. Folders can begin with "~/".
struct ManagedPython {
  PythonManager manager = PythonManager::conda;
  std::string project;
  std::string scripts;            // remote's own folder in the project
  std::string project_key;        // distinguishes the project from others that use the environment
  std::string folder;             // for `system`, it contains only remote's records
  std::string other_folder{};     // used if `folder` cannot be created; "": none
  std::string conda{};            // the folder of the installation
  bool is_own_conda = false;      // it belongs to the user, so only its environments are changed
  bool is_isolated = false;       // its Python ignores the packages in ~/.local
  std::string version{};          // the Python version: "3.11"; "": any
  std::string setup_digest;       // of the settings for setup
  std::string packages_digest{};  // of the settings and the client's files for packages
  std::vector<std::string> packages_places{};  // files and folders on the server that the packages depend on
  std::vector<std::string> system_packages{};  // packages of the distribution: "NAME" or "NAME=VERSION"
  std::vector<Variable> variables{};           // for the prologue and all programs
  std::string prologue{};                      // shell text that runs first
  bool has_prologue = false;                   // configs.yaml has one, even if it is not run now

  static constexpr auto fields() {
    using P = ManagedPython;
    return field_list(
        field("manager", &P::manager), field("project", &P::project, at_most(4096)),
        field("scripts", &P::scripts, at_most(4096)), field("project_key", &P::project_key, digest_limit),
        field("folder", &P::folder, at_most(4096)), field("other_folder", &P::other_folder, at_most(4096)),
        field("conda", &P::conda, at_most(4096)), field("is_own_conda", &P::is_own_conda),
        field("is_isolated", &P::is_isolated), field("version", &P::version, a_line()),
        field("setup_digest", &P::setup_digest, digest_limit),
        field("packages_digest", &P::packages_digest, digest_limit),
        field("packages_places", &P::packages_places, at_most(4096)),
        field("system_packages", &P::system_packages, a_line(max_packages)),
        field("variables", &P::variables, at_most(max_variables)),
        field("prologue", &P::prologue, at_most(1U << 20U)), field("has_prologue", &P::has_prologue));
  }
};

// Why a step failed, for the user.
struct ProvisionFailure {
  std::string reason;
  std::string hint{};
  std::vector<DiskFacts> disks{};  // those that the step writes to, if there is no hint
  bool lacks_environment = false;  // setup has not created the environment, or it is gone

  static constexpr auto fields() {
    using F = ProvisionFailure;
    return field_list(field("reason", &F::reason, a_line(8192)), field("hint", &F::hint, a_line(8192)),
                      field("disks", &F::disks, at_most(4)),
                      field("lacks_environment", &F::lacks_environment));
  }
};

// Creates the project's folder, and determines which steps are done.
struct PreparedRequest {
  static constexpr std::string_view kind = "prepared";

  ManagedPython python;
  std::string share_token{};  // identifies this call; "": no other server has the same folder
  std::string server;         // its name
  bool is_repeated = false;   // another server has just prepared the folder
  bool is_sending = false;    // the project is about to be sent

  static constexpr auto fields() {
    using R = PreparedRequest;
    return field_list(field("python", &R::python), field("share_token", &R::share_token, a_word("", 64)),
                      field("server", &R::server, a_line(1000)), field("is_repeated", &R::is_repeated),
                      field("is_sending", &R::is_sending));
  }
};

struct PreparedReply {
  static constexpr std::string_view kind = "prepared";

  std::string first{};  // the server of this call that was the first to use the project's folder
  bool has_setup = false;
  bool has_packages = false;
  std::optional<ProvisionFailure> failure{};
  std::string errors{};  // the output of a failed prologue
  // If the project is about to be sent: its last sender, and its running jobs.
  std::optional<ProjectSource> source{};
  std::vector<std::string> running{};

  static constexpr auto fields() {
    using R = PreparedReply;
    return field_list(field("first", &R::first, a_line(1000)), field("has_setup", &R::has_setup),
                      field("has_packages", &R::has_packages), field("failure", &R::failure),
                      field("errors", &R::errors), field("source", &R::source),
                      field("running", &R::running, ids(max_running)));
  }
};

// Replaces the record of the project's last sender.
struct RecordSourceRequest {
  static constexpr std::string_view kind = "record_source";

  std::string scripts;                    // remote's own folder in the project
  std::optional<ProjectSource> source{};  // nullopt: removes the record

  static constexpr auto fields() {
    using R = RecordSourceRequest;
    return field_list(field("scripts", &R::scripts, at_most(4096)), field("source", &R::source));
  }
};

struct RecordSourceReply {
  static constexpr std::string_view kind = "record_source";

  std::optional<ProjectSource> former{};  // the record before

  static constexpr auto fields() { return field_list(field("former", &RecordSourceReply::former)); }
};

// Removes partial files of interrupted transfers.
struct RemovePartialsRequest {
  static constexpr std::string_view kind = "remove_partials";

  std::string project;

  static constexpr auto fields() {
    return field_list(field("project", &RemovePartialsRequest::project, at_most(4096)));
  }
};

struct RemovePartialsReply {
  static constexpr std::string_view kind = "remove_partials";

  static constexpr auto fields() { return field_list(); }
};

// Creates the environment.
struct Setup {
  std::string new_version{};  // the Python version for a new environment; "": any
  bool has_site_packages = false;
  bool is_forced = false;             // run even if it is done
  std::string conda_url{};            // of Miniconda's installer, with "{arch}"
  std::string conda_sha256_x86_64{};  // "": not checked
  std::string conda_sha256_aarch64{};

  static constexpr auto fields() {
    using S = Setup;
    return field_list(field("new_version", &S::new_version, a_line()),
                      field("has_site_packages", &S::has_site_packages), field("is_forced", &S::is_forced),
                      field("conda_url", &S::conda_url, a_line(8192)),
                      field("conda_sha256_x86_64", &S::conda_sha256_x86_64, a_line()),
                      field("conda_sha256_aarch64", &S::conda_sha256_aarch64, a_line()));
  }
};

// A file that packages are installed from, in its version on the client's machine.
struct PackageFile {
  std::string name;      // relative to the project
  std::string sha256{};  // if it is "", `size` is compared
  std::uint64_t size = 0;

  static constexpr auto fields() {
    using F = PackageFile;
    return field_list(field("name", &F::name, at_most(4096)), field("sha256", &F::sha256, digest_limit),
                      field("size", &F::size));
  }
};

// Installs the project's packages. Places are URLs or paths.
struct Packages {
  PackageSource source = PackageSource::none;
  bool has_lock = false;  // there is a Pipfile.lock
  std::vector<PackageFile> files{};
  std::string index_url{};
  std::vector<std::string> extra_index_urls{};
  bool has_no_index = false;
  std::vector<std::string> find_links{};
  std::vector<std::string> constraints{};

  static constexpr auto fields() {
    using P = Packages;
    return field_list(field("source", &P::source), field("has_lock", &P::has_lock),
                      field("files", &P::files, at_most(max_package_files)),
                      field("index_url", &P::index_url, at_most(8192)),
                      field("extra_index_urls", &P::extra_index_urls, at_most(8192)),
                      field("has_no_index", &P::has_no_index),
                      field("find_links", &P::find_links, at_most(8192)),
                      field("constraints", &P::constraints, at_most(8192)));
  }
};

// A Provisioning in CBOR follows as data, because it contains passwords of indexes, and requests are logged.
struct ProvisionRequest {
  static constexpr std::string_view kind = "provision";

  static constexpr auto fields() { return field_list(); }
};

struct Provisioning {
  ManagedPython python;
  std::optional<Setup> setup{};
  std::optional<Packages> packages{};

  static constexpr auto fields() {
    using P = Provisioning;
    return field_list(field("python", &P::python), field("setup", &P::setup),
                      field("packages", &P::packages));
  }
};

struct ProvisionEnd {
  std::optional<ProvisionFailure> failure{};

  static constexpr auto fields() { return field_list(field("failure", &ProvisionEnd::failure)); }
};

// A part of the answer, which has one of these. The last part has `end`.
struct ProvisionReply {
  static constexpr std::string_view kind = "provision";

  std::string step{};    // the step that starts
  std::string note{};    // information about a success
  std::string out{};     // from pip and other programs
  std::string errors{};  // their stderr
  std::optional<ProvisionEnd> end{};

  static constexpr auto fields() {
    using R = ProvisionReply;
    return field_list(field("step", &R::step, a_line(8192)), field("note", &R::note, a_line(8192)),
                      field("out", &R::out), field("errors", &R::errors), field("end", &R::end));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::PythonManager> = {
    std::string_view("conda"), std::string_view("venv"), std::string_view("uv"), std::string_view("system")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::PackageSource> = {
    std::string_view("none"), std::string_view("pipenv"), std::string_view("requirements"),
    std::string_view("pyproject")};
