// libgcc's unwinder calls _dl_find_object, which glibc has since 2.35. This version lets the program also run
// on glibc 2.34 (RHEL 9). It gets the same result from dl_iterate_phdr, as older versions of the unwinder
// did.

#include <cstddef>

#include <dlfcn.h>
#include <link.h>

namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* found;
};

int look(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  const ElfW(Phdr)* segment = nullptr;
  const ElfW(Phdr)* frames = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_GNU_EH_FRAME) {
      frames = &header;
    } else if (header.p_type == PT_LOAD &&
               search.address - info->dlpi_addr - header.p_vaddr < header.p_memsz) {
      segment = &header;
    }
  }
  if (segment == nullptr || frames == nullptr) {
    return 0;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader stores addresses
  const auto pointer = [&](ElfW(Addr) address) { return reinterpret_cast<void*>(info->dlpi_addr + address); };
  search.found->dlfo_map_start = pointer(segment->p_vaddr);
  search.found->dlfo_map_end = pointer(segment->p_vaddr + segment->p_memsz);
  search.found->dlfo_eh_frame = pointer(frames->p_vaddr);
  return 1;
}

}  // namespace

// Hidden, so that the dynamic linker does not use it instead of its own.
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(void* address,
                                                                     dl_find_object* found) noexcept {
  *found = {};
  Search search{reinterpret_cast<ElfW(Addr)>(address), found};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
