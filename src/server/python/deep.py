# Facts about torch after its import, for `remote check --deep`. It is run by the environment's Python, like a job. Prints
# messages, each a line "remote-deep JSON" (src/wire/deep.hpp). Writes nothing.
import hashlib, json, os, sys, time

def report(kind, **fields):
    print("remote-deep", json.dumps(dict(fields, kind=kind)), flush=True)

def describe(error):
    text = " ".join((type(error).__name__ + ": " + str(error)).split())[:300]
    return text.encode("utf-8", "replace").decode()  # without lone surrogates, which are not valid in JSON

print(flush=True)
begun = time.time()
try:
    import torch
except BaseException as error:
    report("failed", reason=describe(error))
    report("end")
    sys.exit(0)
report("torch", version=str(torch.__version__).split()[0], took=int(1000 * (time.time() - begun)))
try:
    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    report("devices", count=devices, cuda=torch.version.cuda or torch.version.hip or "-")
    if devices and not torch.version.hip:
        version = torch.cuda.nccl.version()
        report("nccl", version=".".join(map(str, version)) if isinstance(version, tuple) else str(version))
except Exception as error:
    report("trouble", reason=describe(error))

# The shared libraries that are actually mapped, except for the system's own. If two have the same name, one may be from another
# package. The digest covers the size and both ends, where a library has its build id and its tables, because some libraries have
# two gigabytes.
piece = 4 << 20
seen = set()
for line in open("/proc/self/maps", errors="replace"):
    path = line.split(None, 5)[5].rstrip("\n") if line.count("/") else ""
    name = os.path.basename(path)
    if ".so" not in name or path in seen or not path.startswith("/"):
        continue
    if not any(part in path for part in ("/site-packages/", "/dist-packages/", "/cuda", "/nvidia", "/rocm")) and not name.startswith(("libcuda", "libnccl", "libnvidia")):
        continue
    if "/lib-dynload/" in path or name.split(".so")[0].endswith(("-linux-gnu", "-darwin")):
        continue  # Python modules, which belong to a single package
    seen.add(path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.sha256(str(size).encode())
            digest.update(file.read(piece))
            if size > 2 * piece:
                file.seek(size - piece)
            digest.update(file.read(piece))
        report("library", digest=digest.hexdigest()[:16], size=size, path=path)
    except OSError:
        pass
report("end")
