#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <remote/facts.hpp>
#include <remote/gpu.hpp>
#include <remote/top.hpp>

#include "wire/fields.hpp"
#include "wire/folder_flaw.hpp"
#include "wire/source.hpp"
#include "wire/variable.hpp"

// A client's request for facts about a server, and the reply.

namespace remote::wire {

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 62U;
constexpr int max_count = 1 << 20;
constexpr long long last_moment = 253'402'300'800'000;  // the year 10000, in milliseconds since the epoch
// Versions and names of packages become words of commands that `check` suggests.
constexpr Limits version_limit = a_word("._-+");
constexpr Limits package_limit = a_word("._-+!");

enum class DiskPlace { project, environment, tmp, shm };
enum class GpuDetail {
  brief,  // values that change every second
  full,   // also topology, errors, and slower queries
};

// The input that a project's packages are installed from.
struct PackagesStamp {
  std::string scripts;      // remote's own folder in the project
  std::string project_key;  // as in ManagedPython
  std::string digest;
  // The same as in ManagedPython.
  std::vector<std::string> places{};
  std::string other_folder{};
  std::string conda{};

  static constexpr auto fields() {
    using S = PackagesStamp;
    return field_list(
        field("other_folder", &S::other_folder, at_most(4096)), field("conda", &S::conda, at_most(4096)),
        field("scripts", &S::scripts, at_most(4096)), field("project_key", &S::project_key, a_word("", 64)),
        field("digest", &S::digest, a_word("", 64)), field("places", &S::places, at_most(4096)));
  }
};

// Paths are absolute, or relative to the home directory ("~/x", "x").
struct FactsRequest {
  static constexpr std::string_view kind = "facts";

  std::string project{};
  std::string environment{};          // the folder of the Python environment
  std::vector<Variable> variables{};  // for programs that jobs run, and for `activate`
  std::string activate{};             // shell text that enters the Python environment

  bool clock = false;
  bool machine = false;
  bool load = false;
  bool logind = false;
  bool others = false;  // the running jobs of this user, of this project and of others
  // The project's jobs folder: checks whether it is closed, and whether a launch marked the server as sick.
  std::optional<std::string> jobs{};
  // The project's jobs folder: checks whether others can write to the project outside it, and tries the
  // operations of a run there.
  std::optional<std::string> open{};
  std::vector<DiskPlace> disks{};
  std::optional<PackagesStamp>
      packages{};                // checks whether the packages in `environment` were installed from this
  std::optional<bool> python{};  // true: includes its packages
  std::optional<GpuDetail> gpus{};
  std::optional<std::string> program{};  // checks whether a job would find this program
  bool mpi = false;
  std::optional<std::string> route_to{};  // host to find the route to
  std::optional<int> port{};              // port to check; 0: only suggest ports
  // Data follows the request: lines "SIZE SECONDS NAME" of the project's files to compare.
  bool code = false;
  std::optional<std::string>
      scripts{};  // the folder of remote's scripts, which contains the project's sender
  // Folders of the Python environment: checks whether all of them lack an interpreter.
  std::vector<std::string> environments{};

  static constexpr auto fields() {
    using R = FactsRequest;
    return field_list(
        field("project", &R::project, at_most(4096)), field("environment", &R::environment, at_most(4096)),
        field("variables", &R::variables, at_most(max_variables)), field("activate", &R::activate),
        field("clock", &R::clock), field("machine", &R::machine), field("load", &R::load),
        field("logind", &R::logind), field("others", &R::others), field("jobs", &R::jobs, at_most(255)),
        field("open", &R::open, at_most(255)), field("disks", &R::disks, at_most(4)),
        field("packages", &R::packages), field("python", &R::python), field("gpus", &R::gpus),
        field("program", &R::program, at_most(255)), field("mpi", &R::mpi),
        field("route_to", &R::route_to, at_most(255)), field("port", &R::port, in_range(0, 65535)),
        field("code", &R::code), field("scripts", &R::scripts, at_most(4096)),
        field("environments", &R::environments, at_most(4096)));
  }
};

// Requests the load, the GPUs in brief, and the disks that a job uses.
inline FactsRequest moment_request(std::string_view project) {
  FactsRequest request{.project = std::string(project)};
  request.load = true;
  request.gpus = GpuDetail::brief;
  request.disks = {DiskPlace::project, DiskPlace::tmp, DiskPlace::shm};
  return request;
}

// Busy and total processor time since the server's boot, in ticks.
struct Ticks {
  std::uint64_t busy = 0;
  std::uint64_t all = 0;

  static constexpr auto fields() {
    return field_list(field("busy", &Ticks::busy), field("all", &Ticks::all));
  }
};

// The process that listens on a port. pid and program are set only if they are visible to the user.
struct PortHolder {
  std::string user;
  std::optional<int> pid;
  std::string program;

  static constexpr auto fields() {
    return field_list(field("user", &PortHolder::user, a_name()),
                      field("pid", &PortHolder::pid, in_range(1, 1 << 30)),
                      field("program", &PortHolder::program, a_line(64)));
  }
};

// Ports for the first server of a launch.
struct PortFacts {
  std::optional<bool> is_free;       // the requested port
  std::optional<PortHolder> holder;  // if it is taken
  std::optional<int> suggested;      // a free port
  std::optional<int> second;         // another free port, for the supervisor

  static constexpr auto fields() {
    return field_list(field("is_free", &PortFacts::is_free), field("holder", &PortFacts::holder),
                      field("suggested", &PortFacts::suggested, in_range(1, 65535)),
                      field("second", &PortFacts::second, in_range(1, 65535)));
  }
};

// The route to another server.
struct RouteFacts {
  std::string address;                   // its IP address; "": the name cannot be resolved
  std::optional<std::string> interface;  // nullopt: unknown
  std::string source;                    // the local address of that route; "": unknown

  static constexpr auto fields() {
    return field_list(field("address", &RouteFacts::address, a_word(".:%_-", 100)),
                      field("interface", &RouteFacts::interface, a_name(64)),
                      field("source", &RouteFacts::source, a_word(".:%_-", 100)));
  }
};

// mpirun, if its implementation is known.
struct MpiFacts {
  bool hydra = false;  // MPICH or Intel MPI, otherwise Open MPI
  std::string version;
  bool has_daemon = false;  // the program that it starts on other servers is available
  bool root = false;        // the user is root

  static constexpr auto fields() {
    return field_list(field("hydra", &MpiFacts::hydra), field("version", &MpiFacts::version, a_name()),
                      field("has_daemon", &MpiFacts::has_daemon), field("root", &MpiFacts::root));
  }
};

struct FileStamp {
  std::uint64_t size = 0;
  std::int64_t seconds = 0;  // modification time, in seconds since the epoch

  static constexpr auto fields() {
    return field_list(field("size", &FileStamp::size), field("seconds", &FileStamp::seconds));
  }
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// A file that differs from the list.
struct ChangedFile {
  using Stamp = FileStamp;
  std::string name;
  std::optional<Stamp> stamp;  // nullopt: missing

  static constexpr auto fields() {
    return field_list(field("name", &ChangedFile::name, at_most(4096)), field("stamp", &ChangedFile::stamp));
  }
};

struct CodeFacts {
  std::vector<ChangedFile> files;  // the first ones
  std::uint64_t count = 0;         // total number

  static constexpr std::size_t most_files = 1000;

  static constexpr auto fields() {
    return field_list(field("files", &CodeFacts::files, at_most(most_files)),
                      field("count", &CodeFacts::count));
  }
};

struct FactsReply {
  static constexpr std::string_view kind = "facts";

  ServerFacts facts;
  std::optional<std::chrono::milliseconds> clock;  // since the epoch
  int cpus_online = 1;
  Ticks ticks;
  std::vector<OtherProject> others;
  std::vector<std::string> running;  // jobs of this project
  bool disks_hang = false;           // a disk did not respond in time, so there are no facts about disks
  bool has_old_packages = false;     // remote has installed them from a different input
  bool has_leases = false;           // lease files exist; set only if the load was requested
  std::optional<RouteFacts> route;
  std::optional<PortFacts> port;
  std::optional<MpiFacts> mpi;
  std::optional<CodeFacts> code;
  std::string missing;                  // the program of the request, if a job would not find it
  std::optional<ProjectSource> source;  // the last sender of the project, if known
  bool lacks_environment = false;

  static constexpr auto fields() {
    using R = FactsReply;
    return field_list(
        field("facts", &R::facts), field("clock", &R::clock, in_range(0, last_moment)),
        field("cpus_online", &R::cpus_online, in_range(1, max_count)), field("ticks", &R::ticks),
        field("others", &R::others, at_most(1000)), field("disks_hang", &R::disks_hang),
        field("has_old_packages", &R::has_old_packages), field("has_leases", &R::has_leases),
        field("route", &R::route), field("port", &R::port), field("mpi", &R::mpi), field("code", &R::code),
        field("missing", &R::missing, a_word("._-")), field("running", &R::running, ids(max_running)),
        field("source", &R::source), field("lacks_environment", &R::lacks_environment));
  }
};

// The fields of structs in public headers.

constexpr Limits bytes_limit = in_range(0, static_cast<long long>(max_bytes));
constexpr Limits count_limit = in_range(0, max_count);

template <>
struct Fields<GpuProcess> {
  static constexpr auto fields() {
    using P = GpuProcess;
    return field_list(field("pid", &P::pid, in_range(1, 1 << 30)), field("name", &P::name, a_line()),
                      field("memory", &P::memory, bytes_limit), field("user", &P::user, a_word("._-", 100)),
                      field("own", &P::own), field("job", &P::job, a_word("", 32)),
                      field("age", &P::age, in_range(0, 1LL << 40U)));
  }
};

template <>
struct Fields<Gpu> {
  static constexpr auto fields() {
    using G = Gpu;
    return field_list(
        field("vendor", &G::vendor), field("index", &G::index, count_limit),
        field("uuid", &G::uuid, a_line()), field("pci_address", &G::pci_address, a_line()),
        field("name", &G::name, a_line()), field("memory_total", &G::memory_total, bytes_limit),
        field("memory_used", &G::memory_used, bytes_limit),
        field("utilisation", &G::utilisation, in_range(0, 100)),
        field("temperature", &G::temperature, in_range(-100, 300)),
        field("power", &G::power, in_range(0, 100'000)),
        field("power_limit", &G::power_limit, in_range(0, 100'000)), field("clock", &G::clock, count_limit),
        field("clock_max", &G::clock_max, count_limit), field("memory_clock", &G::memory_clock, count_limit),
        field("clock_limits", &G::clock_limits, at_most(16)), field("ecc", &G::ecc),
        field("ecc_uncorrected", &G::ecc_uncorrected),
        field("ecc_uncorrected_lifetime", &G::ecc_uncorrected_lifetime),
        field("remap_pending", &G::remap_pending), field("remap_failed", &G::remap_failed),
        field("persistence", &G::persistence), field("compute_mode", &G::compute_mode, a_word("_")),
        field("mig", &G::mig), field("lost", &G::lost), field("unreadable", &G::unreadable, a_line(64)),
        field("processes", &G::processes, at_most(10'000)));
  }
};

template <>
struct Fields<GpuTool> {
  static constexpr auto fields() {
    using T = GpuTool;
    return field_list(field("vendor", &T::vendor), field("program", &T::program, a_name()),
                      field("state", &T::state), field("text", &T::text, a_line(1000)),
                      field("driver_version", &T::driver_version, a_line()),
                      field("library_version", &T::library_version, a_line()));
  }
};

template <>
struct Fields<GpuTopology> {
  static constexpr auto fields() {
    using T = GpuTopology;
    return field_list(field("devices", &T::devices, a_line(1024)), field("links", &T::links, a_line(1024)));
  }
};

template <>
struct Fields<XidError> {
  static constexpr auto fields() {
    using X = XidError;
    return field_list(field("pci_address", &X::pci_address, a_line()), field("code", &X::code, count_limit),
                      field("text", &X::text, a_line(1000)));
  }
};

template <>
struct Fields<VisibleDevices> {
  static constexpr auto fields() {
    using V = VisibleDevices;
    return field_list(field("variable", &V::variable, a_word("_", 64)),
                      field("value", &V::value, a_line(4096)), field("by_prologue", &V::by_prologue));
  }
};

template <>
struct Fields<GpuFacts> {
  static constexpr auto fields() {
    using G = GpuFacts;
    return field_list(field("gpus", &G::gpus, at_most(1024)), field("tools", &G::tools, at_most(16)),
                      field("topology", &G::topology), field("xids", &G::xids, at_most(1000)),
                      field("visible", &G::visible, at_most(16)));
  }
};

template <>
struct Fields<DiskFacts> {
  static constexpr auto fields() {
    using D = DiskFacts;
    return field_list(
        field("what", &D::what, a_name()), field("path", &D::path, a_line(4096)), field("there", &D::there),
        field("writable", &D::writable), field("device", &D::device),
        field("total_bytes", &D::total_bytes, bytes_limit), field("free_bytes", &D::free_bytes, bytes_limit),
        field("inodes", &D::inodes, bytes_limit), field("free_inodes", &D::free_inodes, bytes_limit),
        field("type", &D::type, a_line()), field("rotational", &D::rotational),
        field("unusable_tmpdir", &D::unusable_tmpdir, a_line(4096)),
        field("access_needs", &D::access_needs, a_line()), field("dangling", &D::dangling, a_line(4096)));
  }
};

template <>
struct Fields<InfinibandPort> {
  static constexpr auto fields() {
    using P = InfinibandPort;
    return field_list(field("device", &P::device, a_name()), field("port", &P::port, in_range(0, 1024)),
                      field("layer", &P::layer, a_word("._-")), field("state", &P::state, a_line()),
                      field("rate", &P::rate, a_line()));
  }
};

template <>
struct Fields<PackageFacts> {
  static constexpr auto fields() {
    return field_list(field("version", &PackageFacts::version, package_limit),
                      field("distribution", &PackageFacts::distribution));
  }
};

template <>
struct Fields<OtherProject> {
  static constexpr auto fields() {
    return field_list(field("folder", &OtherProject::folder, a_line(4096)),
                      field("jobs", &OtherProject::jobs, in_range(1, max_count)));
  }
};

// Without clock_ahead and imported, which the client adds.
template <>
struct Fields<ServerFacts> {
  static constexpr auto fields() {
    using F = ServerFacts;
    return field_list(
        field("machine", &F::machine, a_word("", 64)), field("image", &F::image, a_word("", 64)),
        field("host", &F::host, a_line()), field("os", &F::os, a_line()),
        field("kernel", &F::kernel, a_line()), field("user", &F::user, a_line()), field("uid", &F::uid),
        field("cpu", &F::cpu, a_line()), field("sockets", &F::sockets, count_limit),
        field("cores", &F::cores, count_limit), field("threads", &F::threads, count_limit),
        field("usable_threads", &F::usable_threads, count_limit),
        field("numa_nodes", &F::numa_nodes, count_limit), field("cpu_limit", &F::cpu_limit, count_limit),
        field("memory", &F::memory, bytes_limit),
        field("memory_available", &F::memory_available, bytes_limit),
        field("memory_limit", &F::memory_limit, bytes_limit),
        field("load", &F::load, Limits{.least = 0, .most = 1'000'000, .size = 3}),
        field("disks", &F::disks, at_most(4)), field("limits", &F::limits, a_name(16)),
        field("python_program", &F::python_program, a_line(4096)), field("python", &F::python, version_limit),
        field("python_managed", &F::python_managed),
        field("python_refusal", &F::python_refusal, a_line(1000)),
        field("hidden_python", &F::hidden_python, a_line(4096)),
        field("prologue_failure", &F::prologue_failure, in_range(1, 255)),
        field("python_path", &F::python_path, a_line(4096)),
        field("python_home", &F::python_home, a_line(4096)), field("torch", &F::torch, version_limit),
        field("cuda", &F::cuda, version_limit), field("hip", &F::hip, version_limit),
        field("nccl", &F::nccl, package_limit), field("packages", &F::packages, a_word("._-+!", 20'000)),
        field("driver", &F::driver, a_line()), field("gpus", &F::gpus),
        field("infiniband", &F::infiniband, at_most(1024)), field("programs", &F::programs, a_name(64)),
        field("hidden_rsync", &F::hidden_rsync, a_line(255)),
        field("kill_user_processes", &F::kill_user_processes),
        field("kill_excluded", &F::kill_excluded, a_line(1000)),
        field("kill_only", &F::kill_only, a_line(1000)), field("linger", &F::linger),
        field("removes_ipc", &F::removes_ipc), field("in_session", &F::in_session),
        field("sick", &F::sick, a_word("", 16)), field("jobs_closed", &F::jobs_closed),
        field("open_path", &F::open_path, a_line(4096)), field("flaw", &F::flaw),
        field("flaw_text", &F::flaw_text, a_line()));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::DiskPlace> = {
    std::string_view("project"), std::string_view("environment"), std::string_view("tmp"),
    std::string_view("shm")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::GpuDetail> = {std::string_view("brief"),
                                                                                 std::string_view("full")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::GpuVendor> = {
    std::string_view("nvidia"), std::string_view("amd"), std::string_view("intel")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::ClockLimit> = {
    std::string_view("idle"),
    std::string_view("application_setting"),
    std::string_view("power_cap"),
    std::string_view("hardware_slowdown"),
    std::string_view("sync_boost"),
    std::string_view("software_thermal"),
    std::string_view("hardware_thermal"),
    std::string_view("hardware_power_brake"),
    std::string_view("display_setting"),
    std::string_view("other")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::GpuToolState> = {
    std::string_view("answered"),  std::string_view("no_devices"),  std::string_view("no_driver"),
    std::string_view("mismatch"),  std::string_view("lost_device"), std::string_view("no_permission"),
    std::string_view("no_access"), std::string_view("hangs"),       std::string_view("failed")};
