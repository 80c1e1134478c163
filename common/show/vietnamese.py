"""The reports' own words in Vietnamese: each sentence of the code, and what it is here.

The terms, with the English that a trace or a profiler has for them: bản vết (trace), luồng
(thread), lệnh khởi chạy (launch), hợp nhất (fused), mặt nạ nhân quả (causal mask), thanh ghi
(register), bộ nhớ chia sẻ (shared memory), tỷ lệ lấp đầy (occupancy). Names of ops, kinds of steps
and kernels stay.
"""

SENTENCES = {
    # ── Numbers, and what is counted ──
    "unknown": "không rõ",
    "{first} and {more} more": "{first} và {more} nữa",
    " and ": " và ",
    "at least {work}": "ít nhất {work}",
    "{least} to {most} {kind}": "{least} đến {most} {kind}",
    "kernel": "kernel",
    "copy": "lần copy",
    "memset": "memset",
    "forward": "forward",
    "launch": "lệnh khởi chạy",
    "working op": "op có việc",
    "region": "vùng",
    "step": "bước",
    "event": "sự kiện",
    "GPU event": "sự kiện GPU",
    "launch or other call": "lệnh khởi chạy hoặc lời gọi khác",
    "non-finite number": "số không hữu hạn",
    "more correlation id": "correlation id khác",
    "more kernel": "kernel khác",
    "more label": "label khác",
    "other": "thứ khác",
    "profiler step": "step của profiler",
    "block": "khối",
    "collective": "phép tập thể",
    "file": "tệp",
    "memory event": "sự kiện bộ nhớ",
    "module": "module",
    "more file": "tệp khác",
    "more place": "chỗ khác",
    "more step": "bước khác",
    "rank": "rank",
    "recording": "bản ghi",
    "label": "label",
    "op": "op",
    "host name": "tên máy",
    "user name": "tên người dùng",
    "personal path": "đường dẫn cá nhân",
    "path": "đường dẫn",
    "e-mail address": "địa chỉ e-mail",
    "IP address": "địa chỉ IP",
    "hardware address": "địa chỉ phần cứng",
    "token": "token",
    "the first ": "cái đầu ",
    'in "{key}": ': 'ở "{key}": ',
    # ── The sums of a region ──
    "{work} a forward ({forwards})": "{work} mỗi forward ({forwards})",
    "{work} a forward ({forwards}, alike)": "{work} mỗi forward ({forwards}, giống nhau)",
    "{work} a forward ({forwards}, not alike)": "{work} mỗi forward ({forwards}, không giống nhau)",
    "GPU {time}": "GPU {time}",
    "GPU at least {time}": "GPU ít nhất {time}",
    "{gpu} + {time} on autograd threads": "{gpu} + {time} trên các luồng autograd",
    "{launches} captured into a graph, not run": "{launches} được ghi vào một graph, không chạy",
    "CPU {time}": "CPU {time}",
    "peak unknown": "đỉnh bộ nhớ không rõ",
    "peak +{size} MiB": "đỉnh bộ nhớ +{size} MiB",
    "unknown kernels": "không rõ những kernel nào",
    "nothing on the GPU": "không có gì trên GPU",
    "nothing on the GPU from its own thread": "không có gì trên GPU từ luồng của chính nó",
    # ── The GPU's time ──
    "GPU idle {share} {where}": "GPU rảnh {share} {where}",
    "inside a forward": "trong một forward",
    "between first and last event": "giữa sự kiện đầu và sự kiện cuối",
    "launch-bound": "vì lệnh khởi chạy đến muộn",
    "waiting, though launched": "đợi dù đã được khởi chạy",
    "launch unknown": "không rõ lệnh khởi chạy",
    "cause unknown": "không rõ nguyên nhân",
    "Tensor Cores unknown": "Tensor Core không rõ",
    "Tensor Cores {share} of GPU time": "Tensor Core {share} thời gian GPU",
    "Tensor Cores {share} (unknown for {unsure}) of GPU time": (
        "Tensor Core {share} thời gian GPU (không rõ với {unsure})"
    ),
    "copies and memsets {share}": "copy và memset {share}",
    "communication {share} ({alone} of it exposed)": (
        "truyền thông {share} ({alone} trong đó không chạy cùng lúc với tính toán)"
    ),
    # ── What each variant is ──
    "five lines, one op each": "năm dòng, mỗi dòng một op",
    "the same five, the mask filled in place": "vẫn năm dòng ấy, mask được điền in-place",
    "one call, worked out op by op": "một lời gọi, tính từng op một",
    "one call, the kernel that came from xFormers": "một lời gọi, kernel có gốc từ xFormers",
    "one call, FlashAttention-2": "một lời gọi, FlashAttention-2",
    "one call, a kernel that cuDNN generates": "một lời gọi, kernel do cuDNN sinh ra",
    "one call, the backend left to PyTorch": "một lời gọi, để PyTorch chọn backend",
    "a kernel in Triton, to read in the script": "kernel viết bằng Triton, đọc được trong script",
    "a kernel in Gluon, for Hopper alone": "kernel viết bằng Gluon, chỉ cho Hopper",
    "FlexAttention, a kernel that torch.compile writes": (
        "FlexAttention, kernel do torch.compile viết"
    ),
    "FlashAttention-2 from the Hub": "FlashAttention-2 lấy từ Hub",
    "a kernel of the package flash-attn-4": "kernel của gói flash-attn-4",
    # ── What is worth seeing ──
    "no step in this trace": "không có bước nào trong bản vết này",
    "PyTorch took {backend}": "PyTorch chọn {backend}",
    "one kernel": "một kernel",
    "one kernel, {name}": "một kernel, {name}",
    "{kernel}, behind a memset": "{kernel}, sau một memset",
    ", {warps} of {most} warps on an SM": ", {warps} trên {most} warp của một SM",
    "one op, {name}": "một op, {name}",
    "+{copies} from {ops}": "+{copies} từ {ops}",
    "the copy of 04_a is gone": "lần copy của 04_a đã biến mất",
    "the copies of 04_a are gone": "các lần copy của 04_a đã biến mất",
    "{gone}, all else is there": "{gone}, mọi thứ khác vẫn còn",
    "Tensor Cores unused by the matmuls": "các matmul không dùng Tensor Core",
    "Tensor Cores unused by the matmuls, which read {types}": (
        "các matmul đọc {types}, không dùng Tensor Core"
    ),
    "builds the mask in every call": "dựng lại mặt nạ nhân quả trong mỗi lời gọi",
    "compiled C++ leaves no event on the CPU": (
        "mã C++ đã biên dịch không để lại sự kiện nào trên CPU"
    ),
    "one compiled kernel does {ops}": "một kernel hợp nhất (đã biên dịch) làm {ops}",
    "{kind} takes most, {share} of GPU time": "{kind} lâu nhất, {share} thời gian GPU",
    "{kind} takes most, {share} of op time": "{kind} lâu nhất, {share} thời gian các op",
    # ── Everything at a glance ──
    "variant": "biến thể",
    "kernels\n+ copies\n+ memsets": "kernel\n+ copy\n+ memset",
    "working\nops": "op có\nviệc",
    "÷ naive": "÷ naive",
    "of\npeak": "so với\nđỉnh",
    "peak\nMiB": "đỉnh\nMiB",
    "the post:\nevents, GPU": "bài viết:\nsự kiện, GPU",
    "÷ naive: time over naive's in the same table; GPU time where there is a GPU.": (
        "÷ naive: thời gian chia cho thời gian của naive trong cùng bảng; có GPU thì là thời gian "
        "GPU."
    ),
    "TFLOP/s count the useful work, 4·B·H·S²·D/2: the half that the causal mask leaves, though "
    "some variants compute the whole square.": (
        "TFLOP/s chỉ đếm phần việc có ích, 4·B·H·S²·D/2: nửa còn lại sau mặt nạ nhân quả, dù vài "
        "biến thể tính cả hình vuông."
    ),
    "Peak of {gpu}: {peak} TFLOP/s {dtype} (CUDA cores), by NVIDIA's data sheet.": (
        "Đỉnh của {gpu}: {peak} TFLOP/s {dtype} (CUDA core), theo datasheet của NVIDIA."
    ),
    "Peak of {gpu}: {peak} TFLOP/s {dtype} (Tensor Cores, dense), by NVIDIA's data sheet.": (
        "Đỉnh của {gpu}: {peak} TFLOP/s {dtype} (Tensor Core, ma trận đặc), theo datasheet của "
        "NVIDIA."
    ),
    "The post: what it published for an {gpu} and other versions; its events are kernels and "
    "copies, no memsets.": (
        "Bài viết: những gì nó công bố cho {gpu} và các phiên bản khác; sự kiện ở đó là kernel và "
        "copy, không kể memset."
    ),
    "Peak MiB: memory of a forward at its peak, over its inputs.": (
        "Đỉnh MiB: bộ nhớ của một forward lúc cao nhất, chưa kể đầu vào."
    ),
    "Also recorded, at other lengths: --sweep {lengths} shows them.": (
        "Cũng có bản ghi ở các độ dài khác: --sweep {lengths} cho xem."
    ),
    "GPU time of a forward": "thời gian GPU của một forward",
    "CPU time of a forward": "thời gian CPU của một forward",
    "peak memory over the inputs, MiB": "đỉnh bộ nhớ chưa kể đầu vào, MiB",
    "growth": "tăng",
    "growth: the k of seq^k that fits best, and its standard error.": (
        "tăng: số k của seq^k khớp nhất, và sai số chuẩn của nó."
    ),
    "{variant} at {lengths}: {why}": "{variant} ở {lengths}: {why}",
    "no recording": "không có bản ghi",
    # ── The page ──
    "Attention at a glance": "Attention trong một cái nhìn",
    "Attention, variant by variant": "Attention, từng biến thể một",
    "{times} times faster than naive attention": "Nhanh gấp {times} lần naive attention",
    "{head}, with {less} times less memory": "{head}, bộ nhớ chỉ bằng 1/{less}",
    "{fast}, {fast_work}, takes {fast_time} of GPU time where {naive}, {naive_work}, takes "
    "{naive_time}.": (
        "{fast}, {fast_work}, mất {fast_time} thời gian GPU, còn {naive}, {naive_work}, mất "
        "{naive_time}."
    ),
    "{fast}, {fast_work}, takes {fast_time} of CPU time where {naive}, {naive_work}, takes "
    "{naive_time}.": (
        "{fast}, {fast_work}, mất {fast_time} thời gian CPU, còn {naive}, {naive_work}, mất "
        "{naive_time}."
    ),
    "At its peak it holds {fast} over its inputs, not {naive}.": (
        "Lúc cao nhất nó giữ {fast} ngoài đầu vào, thay vì {naive}."
    ),
    "Every lane is one forward; lanes below one another have one scale. Point at a step for its "
    "name and time, or open the steps of a lane.": (
        "Mỗi làn là một forward; các làn xếp dưới nhau có cùng tỷ lệ. Trỏ vào một bước để xem tên "
        "và thời gian, hoặc mở các bước của một làn."
    ),
    "Colours": "Màu",
    "GPU time of one forward, the one of median time. The table has means over all of them.": (
        "Thời gian GPU của một forward, cái có thời gian trung vị. Trong bảng là trung bình của "
        "tất cả."
    ),
    "CPU time of one forward, the one of median time. The table has means over all of them.": (
        "Thời gian CPU của một forward, cái có thời gian trung vị. Trong bảng là trung bình của "
        "tất cả."
    ),
    "The short ones, magnified {times} times": "Những làn ngắn, phóng to {times} lần",
    "{variant}, step by step": "{variant}, từng bước một",
    "no step with a known time": "không có bước nào biết được thời gian",
    "{gpu}, as published: {time}": "{gpu}, theo bài viết: {time}",
    "{bar}, longer than the lane": "{bar}, dài hơn cả làn",
    "Steps and launches": "Các bước và lệnh khởi chạy",
    "recording:": "bản ghi:",
    "launched by {ops}": "được khởi chạy bởi {ops}",
    "CPU: ops, and the calls that launch": "CPU: các op, và các lệnh khởi chạy (launch)",
    "The clocks of CPU and GPU disagree: no arrows.": (
        "Đồng hồ của CPU và GPU không khớp: không vẽ mũi tên."
    ),
    "By length": "Theo độ dài",
    "time of a forward": "thời gian của một forward",
    "peak memory over the inputs": "đỉnh bộ nhớ chưa kể đầu vào",
    "tokens in a sequence": "số token của một chuỗi",
    "Both axes are logarithmic: a power of the length is a straight line, and its exponent the "
    "slope.": (
        "Cả hai trục đều là logarit: lũy thừa của độ dài là một đường thẳng, và số mũ là độ dốc."
    ),
    "{title} against the length of the sequence; the figures stand in the table below": (
        "{title} theo độ dài của chuỗi; các con số nằm trong bảng bên dưới"
    ),
    "The guide": "Bài hướng dẫn",
    "goes through such recordings, one by one. The post is “{title}”.": (
        "đi qua từng bản ghi như thế. Bài viết là “{title}”."
    ),
    # ── A whole trace ──
    "{steps}, mean: CPU {time}": "{steps}, trung bình: CPU {time}",
    "labels": "label",
    "times": "số lần",
    "CPU": "CPU",
    "GPU": "GPU",
    "own thread": "luồng của nó",
    "autograd": "autograd",
    "any running": "có việc chạy",
    "its backward": "backward của nó",
    "under no label": "không thuộc label nào",
    "backward of unknown forward": "backward không rõ của forward nào",
    "and {labels}": "và {labels}",
    "--region LABEL looks closer at one": "--region LABEL xem kỹ một label",
    "most expensive on the GPU": "tốn nhất trên GPU",
    "which is": "là gì",
    "share": "phần",
    "most expensive ops": "op tốn nhất",
    "self CPU": "CPU tự thân",
    "communication": "truyền thông",
    "of": "kiểu",
    "elements": "phần tử",
    "ranks": "rank",
    "GPU idle, while the CPU was in": "GPU rảnh, trong lúc CPU ở",
    "longest": "lâu nhất",
    "in all": "tổng cộng",
    "of idle": "trong lúc rảnh",
    "launched before, and waiting": "đã khởi chạy trước đó, và đang đợi",
    "a launch that is not in the file": "một lệnh khởi chạy không có trong file",
    "unknown: the clocks of CPU and GPU disagree": "không rõ: đồng hồ của CPU và GPU không khớp",
    "Python, between ops": "Python, giữa các op",
    "the data loader": "data loader",
    "compiling": "biên dịch",
    "nothing that was recorded": "không có gì được ghi",
    # ── How far to trust it ──
    "how far to trust it: {doubt}": "tin được đến đâu: {doubt}",
    "warning: {text}": "cảnh báo: {text}",
    "no CPU events: the GPU's own times hold; what launched them, and for which label, is not "
    "recorded (profile with CPU activity too)": (
        "không có sự kiện CPU: thời gian của chính GPU vẫn đúng; lệnh nào khởi chạy chúng, cho "
        "label nào, thì không được ghi (hãy ghi cả hoạt động của CPU)"
    ),
    "{lost} of {launches} lost their GPU record, so GPU times and counts are lower bounds": (
        "{lost} trong {launches} mất bản ghi GPU, nên thời gian và số đếm của GPU chỉ là cận dưới"
    ),
    "{leaked} of {events} have no launch in the file: recording began in the middle of work, and "
    "they are under no label": (
        "{leaked} trong {events} không có lệnh khởi chạy trong file: việc ghi bắt đầu giữa chừng, "
        "và chúng không thuộc label nào"
    ),
    "the clocks of CPU and GPU disagree, so times hold within each, and no cause of idle time is "
    "known": (
        "đồng hồ của CPU và GPU không khớp, nên thời gian chỉ đúng trong từng bên, và không biết "
        "được vì sao GPU rảnh"
    ),
    # ── Warnings ──
    "no GPU events in the trace (CUPTI unavailable or CUDA activity off): kernel counts and GPU "
    "times are unknown": (
        "không có sự kiện GPU trong bản vết (thiếu CUPTI hoặc không ghi CUDA): không rõ số kernel "
        "và thời gian GPU"
    ),
    "{regions} has no usable time, left out": "{regions} không có thời gian dùng được, bị bỏ ra",
    "{regions} have no usable time, left out": "{regions} không có thời gian dùng được, bị bỏ ra",
    "launch {correlation}": "lệnh khởi chạy {correlation}",
    "no launch": "không lệnh khởi chạy nào",
    "joined in order of time": "được ghép theo thứ tự thời gian",
    "all counted with that launch": "tất cả được tính cho lệnh khởi chạy ấy",
    "correlation {correlation} belongs to {count} kernels but its launch ({call}) starts one; "
    "{launches} has no kernel; {how}": (
        "correlation {correlation} thuộc về {count} kernel nhưng lệnh khởi chạy của nó ({call}) "
        "chỉ chạy một; {launches} không có kernel; {how}"
    ),
    "correlation {correlation} belongs to {count} kernels but its launch ({call}) starts one; "
    "{launches} have no kernel; {how}": (
        "correlation {correlation} thuộc về {count} kernel nhưng lệnh khởi chạy của nó ({call}) "
        "chỉ chạy một; {launches} không có kernel; {how}"
    ),
    "{ids} of several kernels": "{ids} cũng thuộc về nhiều kernel",
    "{kernels} has correlation 0 and cannot be linked": (
        "{kernels} có correlation 0, không nối được"
    ),
    "{kernels} have correlation 0 and cannot be linked": (
        "{kernels} có correlation 0, không nối được"
    ),
    "{events} without a launch in the file, left out: launched before recording started, as by a "
    "warm-up that was not synchronised": (
        "{events} không có lệnh khởi chạy trong file, bị bỏ ra: được khởi chạy trước khi bắt đầu "
        "ghi, như bởi bước làm nóng không được đồng bộ"
    ),
    "{launches} has no kernel record; GPU records were lost": (
        "{launches} không có bản ghi kernel; bản ghi của GPU đã mất"
    ),
    "{launches} have no kernel record; GPU records were lost": (
        "{launches} không có bản ghi kernel; bản ghi của GPU đã mất"
    ),
    "{events} has ts 0 / dur 0; its time is unknown": (
        "{events} có ts 0 / dur 0; không rõ thời gian"
    ),
    "{events} have ts 0 / dur 0; their times are unknown": (
        "{events} có ts 0 / dur 0; không rõ thời gian"
    ),
    "kernel {number} lasts {time} us but the next kernel on its stream starts {after} us after its "
    "start; its duration (and the CUDA total) is not credible": (
        "kernel {number} kéo dài {time} us nhưng kernel tiếp theo trên cùng stream bắt đầu chỉ "
        "{after} us sau nó; thời lượng ấy (và tổng CUDA) không đáng tin"
    ),
    "{kernels} of no credible duration": "{kernels} có thời lượng không đáng tin",
    "{regions} inside another one of this label: what is done there is counted in both": (
        "{regions} nằm trong một vùng khác cùng label: việc ở đó được tính cho cả hai"
    ),
    "{regions} begun inside another one on the same thread and ended behind it: recordings of "
    "several processes under one process id, whose work cannot be told apart?": (
        "{regions} bắt đầu trong một vùng khác trên cùng luồng và kết thúc sau nó: bản ghi của "
        "nhiều tiến trình dưới một process id, không phân biệt được việc của ai?"
    ),
    "{regions} has a negative or zero duration (unfinished), left out": (
        "{regions} có thời lượng âm hoặc bằng không (chưa xong), bị bỏ ra"
    ),
    "{regions} have a negative or zero duration (unfinished), left out": (
        "{regions} có thời lượng âm hoặc bằng không (chưa xong), bị bỏ ra"
    ),
    "{events} was launched by other threads during the region and not counted": (
        "{events} do các luồng khác khởi chạy trong lúc ấy, không được tính"
    ),
    "{events} were launched by other threads during the region and not counted": (
        "{events} do các luồng khác khởi chạy trong lúc ấy, không được tính"
    ),
    "the forwards differ: steps and times are those of the first": (
        "các forward khác nhau: các bước và thời gian là của forward đầu"
    ),
    "compiled C++ leaves no event on the CPU: what it did is no step here, and in no time but the "
    "forward's (TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1 records it)": (
        "mã C++ đã biên dịch không để lại sự kiện nào trên CPU: việc nó làm không là bước nào ở "
        "đây, và chỉ nằm trong thời gian của forward "
        "(TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1 thì ghi lại)"
    ),
    "recorded as compiled, and no compiled code ran: this is eager": (
        "ghi là compile, mà không có mã đã biên dịch nào chạy: đây là eager"
    ),
    "no fused kernel served this shape; math materialises the score matrix": (
        "không kernel hợp nhất nào nhận shape này; math dựng cả ma trận score trong bộ nhớ"
    ),
    "backend {asked} was asked for, and {ran} ran": "đã yêu cầu backend {asked}, mà {ran} đã chạy",
    "{events} without a launch in the file": "{events} không có lệnh khởi chạy trong file",
    "{events} of unknown time, counted and not summed": (
        "{events} không rõ thời gian, được đếm mà không cộng"
    ),
    "{events} of no credible duration (longer than until the next on the stream has ended), "
    "counted and not summed": (
        "{events} có thời lượng không đáng tin (dài hơn đến lúc sự kiện kế tiếp trên stream đã "
        "xong), được đếm mà không cộng"
    ),
    "{launches} is stamped outside the op that its External id names; the id decides": (
        "{launches} có thời điểm nằm ngoài op mà External id của nó chỉ tới; id quyết định"
    ),
    "{launches} are stamped outside the op that their External id names; the id decides": (
        "{launches} có thời điểm nằm ngoài op mà External id của chúng chỉ tới; id quyết định"
    ),
    "{launches} has an External id of several ops, and its thread and time name none of them: what "
    "they launched is under no label, and sums that may hold it are unknown": (
        "{launches} mang External id của nhiều op, mà luồng và thời điểm không chỉ tới op nào "
        "trong số đó: việc được khởi chạy không thuộc label nào, và không rõ các tổng có thể chứa "
        "nó"
    ),
    "{launches} have an External id of several ops, and their thread and time name none of them: "
    "what they launched is under no label, and sums that may hold it are unknown": (
        "{launches} mang External id của nhiều op, mà luồng và thời điểm không chỉ tới op nào "
        "trong số đó: việc được khởi chạy không thuộc label nào, và không rõ các tổng có thể chứa "
        "nó"
    ),
    "the clocks of CPU and GPU disagree: kernels start {time} before their launches; no cause of "
    "idle time is read from comparing them": (
        "đồng hồ của CPU và GPU không khớp: kernel bắt đầu {time} trước lệnh khởi chạy của chúng; "
        "không suy ra nguyên nhân GPU rảnh từ việc so hai đồng hồ"
    ),
    "{count} processes in one file; what all of them did is counted": (
        "{count} tiến trình trong một file; việc của tất cả đều được tính"
    ),
    "{events} of a correlation id that several calls carry, as those of several processes do; "
    "which of them made it is unknown, left out": (
        "{events} có correlation id mà nhiều lời gọi cùng mang, như khi có nhiều tiến trình; không "
        "rõ của lời gọi nào, bị bỏ ra"
    ),
    "damaged file: {bytes} bytes ({events} or part of one) left out; what is missing is in no "
    "number": (
        "file hỏng: bỏ ra {bytes} byte ({events} hoặc một phần của một sự kiện); phần thiếu không "
        "nằm trong con số nào"
    ),
    "the GPU's properties are not in what is left of the file": (
        "phần còn lại của file không có thông tin về GPU"
    ),
    "{calls} without a usable time, left out": "{calls} không có thời gian dùng được, bị bỏ ra",
    "{events} not as the profiler writes them: read without the field that is odd, or left out": (
        "{events} không giống cách profiler ghi: đọc mà bỏ trường lạ, hoặc bị bỏ ra"
    ),
    "{events} of a phase that is not read (neither whole nor a pair of begin and end), left out": (
        "{events} thuộc loại không được đọc (không trọn vẹn, cũng không phải cặp đầu và cuối), bị "
        "bỏ ra"
    ),
    "categories that look like an accelerator's and are not read: {kinds}": (
        "những loại trông như của một bộ tăng tốc và không được đọc: {kinds}"
    ),
    "{numbers} (NaN or Infinity) treated as missing": "{numbers} (NaN hoặc Infinity) coi như thiếu",
    "before you share it: the file holds {found}": "trước khi chia sẻ: trong file có {found}",
    "CPU: of recorded forwards. Recording costs CPU time too, not the same for each: this is no "
    "order of what they cost unrecorded.": "CPU: của các forward được ghi. Bản thân việc ghi "
    "cũng tốn thời gian CPU, mỗi cách một khác: đây không phải thứ tự chi phí khi không ghi.",
    "call": "lời gọi",
    "other kind": "loại khác",
}
